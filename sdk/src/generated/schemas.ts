// Made from docs/schema/openapi-released.json.gz by `npm run docs`.
export type AcceptInvitesInput = {
  /** Invitation. The token in the link of the mail. */
  token: string
}
export type AcceptInvitesReply = {
  data: AcceptInvitesResult
}
export type AcceptInvitesResult = {
  developer_id: string
  email: string
  name: string | null
  role: "viewer" | "developer" | "admin" | "owner" | ((string & {}))
  joined_at: string
  organization_id: string
  organization_name: string
}
export type AccessToken = {
  id: string
  name: string
  token_prefix: string
  scopes: Array<string>
  project_ids: Array<string> | null
  expires_at: string | null
  last_used_at: string | null
  created_at: string
  revoked_at: string | null
}
export type AccessTokenPage = {
  data: Array<AccessToken>
  total: number
  offset: number
  limit: number
}
export type AchievementDaily = {
  from: string
  to: string
  timezone: string
  series: {
    unlocked: Array<{
      date: string
      value: number
    }>
    users: Array<{
      date: string
      value: number
    }>
  }
}
export type AchievementDailyReply = {
  data: AchievementDaily
}
export type AchievementDefinition = {
  id: string
  key: string
  name: string
  description: string | null
  icon_url: string | null
  xp_reward: number
  criteria: Criteria
  is_hidden: boolean
  sort_order: number
  is_active: boolean
  created_at: string
  updated_at: string
}
export type AchievementDefinitionPage = {
  data: Array<AchievementDefinition>
  total: number
  offset: number
  limit: number
}
export type AchievementDefinitionReply = {
  data: AchievementDefinition
}
export type AchievementStats = {
  total_unlocks: number
  unlocks_7d: number
  achievements: Array<{
    id: string
    key: string
    name: string
    unlocks: number
    unlocks_7d: number
    rate: number
  }>
}
export type AchievementStatsReply = {
  data: AchievementStats
}
export type AchievementUser = {
  app_user_id: string
  achievement_id: string
  unlocked_at: string
  source: "criteria" | "grant" | "backfill" | "reward" | ((string & {}))
  app_users: FriendUser
}
export type AchievementUserPage = {
  data: Array<AchievementUser>
  total: number
  offset: number
  limit: number
}
export type AddGroupMemberInput = {
  /** User. The id of the user. */
  app_user_id: string
  /** Role. Owner, admin, member, or viewer who only reads. Default: `"member"`. */
  role?: "admin" | "member" | "viewer"
}
export type AddParticipantsReply = {
  data: AddParticipantsResult
}
export type AddParticipantsResult = {
  user_id: string
  display_name: string
  avatar_url: string | null
  last_read_at: string | null
  joined_at: string
  already_member?: true
}
export type AddReactionInput = {
  /** Emoji. The reaction. */
  emoji: string
}
export type AddSegmentMembersInput = {
  /** Users. The ids of the users. */
  user_ids: Array<string>
}
export type AddSegmentMembersReply = {
  data: AddSegmentMembersResult
}
export type AddSegmentMembersResult = {
  added: number
  unknown: Array<string>
}
export type AdminConversation = {
  id: string
  type: "direct" | "group" | ((string & {}))
  name: string | null
  owner_id: string | null
  conversation_participants: Array<MarkConversationReadResult>
  last_message: ConversationLastMessage
  message_count: number
  last_activity_at: string
  created_at: string
  updated_at: string
}
export type AdminConversationPage = {
  data: Array<AdminConversation>
  total: number
  offset: number
  limit: number
}
export type AdminCreateFeedEntryInput = CreateFeedEntryInput & {
  /** As. The id of the user whose entry it is. */
  as_user_id?: string
  /** System entry. It has no author. Default: `false`. */
  system?: boolean
}
export type AdminCurrencyTransaction = CurrencyTransaction & {
  user?: AiInvocationUser
}
export type AdminCurrencyTransactionCursorPage = {
  data: Array<AdminCurrencyTransaction>
  pagination: CurrencyTransactionPagination
}
export type AdminEvaluateFlagInput = {
  /** User. The id of the user. */
  user_id: string
  /** Attributes. What the app knows of the user, such as `app_version`; filters read them. */
  attributes?: Record<string, unknown>
}
export type AdminEvaluateFlagReply = {
  data: AdminEvaluateFlagResult
}
export type AdminEvaluateFlagResult = FlagDetail & {
  bucket: number
  override: unknown
  trace: Array<{
    rule_index: number
    holds: boolean
    value: unknown
    conditions: Record<string, boolean>
  }>
}
export type AdminGrantInventoryInput = GrantInventoryInput & {
  /** User. The id of the user. */
  app_user_id: string
  reason: string
}
export type AdminInventory = Inventory & {
  user?: AiInvocationUser
}
export type AdminInventoryPage = {
  data: Array<AdminInventory>
  total: number
  offset: number
  limit: number
}
export type AdminInvokeAiPromptInput = {
  /** Context. Values for the marks of the prompt, such as `{"place": "Paris"}`. Default: `{}`. */
  context?: Record<string, unknown>
  /** Longest answer. In tokens, about four characters each. */
  max_tokens?: number
  /** Stream. The answer comes piece by piece. Default: `false`. */
  stream?: boolean
  /** Form of the answer. Text, JSON, or JSON by a schema. */
  response_format?: InvokeAiPromptInputResponseFormat
  /** Messages. The conversation, oldest first. Default: `[]`. */
  messages?: Array<{
    /** From. The user, the model, or instructions of an administrator. */
    role: "user" | "assistant" | "system"
    /** Content. A text, or parts with texts and pictures. */
    content: InvokeAiPromptInputContent
  }>
}
export type AdminPurchase = Purchase & {
  user?: AiInvocationUser
}
export type AdminPurchaseCursorPage = {
  data: Array<AdminPurchase>
  pagination: CurrencyTransactionPagination
}
export type AdminSendMessageInput = SendMessageInput & ({
  /** As. The id of the user who writes; or it is a system message. */
  as_user_id?: string | null
  /** System message. It has no author. Default: `false`. */
  system?: boolean
})
export type AdminUser = {
  id: string
  email: string | null
  phone: string | null
  display_name: string
  avatar_url: string | null
  external_id: string | null
  anonymous_id: string | null
  auth_providers: Array<{
    provider: string
    provider_id: string
  }>
  properties: Record<string, unknown>
  timezone: string | null
  email_verified: boolean
  phone_verified: boolean
  first_seen_at: string
  last_seen_at: string
  is_banned: boolean
  muted_until: string | null
  created_at: string
  updated_at: string
  streaks: Array<{
    streak_definitions: {
      name: string
      qualifying_event: string
    }
  } & Record<string, unknown>>
  entitlements: Array<Record<string, unknown>>
} & Record<string, unknown>
export type AdminUserReply = {
  data: AdminUser
}
export type AdoptMonetizationInput = {
  /** Everything. Takes over all that the provider has. Default: `false`. */
  adopt_all?: boolean
  /** Objects. Or these alone. */
  objects?: Array<{
    /** Kind. Such as `product`. */
    object_type: string
    /** Identifier. What the provider calls it. */
    identifier: string
  }>
}
export type AdoptMonetizationReply = {
  data: AdoptMonetizationResult
}
export type AdoptMonetizationResult = {
  adopted: number
  entitlements: number
  products: number
  offerings: number
  packages: number
  paywalls: number
}
export type AdvanceOnboardingInput = {
  /** Step. The id of the step that is done. */
  step_id?: string
  /** Answers. What the user said, any JSON. */
  answers?: unknown
}
export type AdvanceOnboardingReply = {
  data: AdvanceOnboardingResult
}
export type AdvanceOnboardingResult = {
  app_user_id: string
  flow_id: string
  current_step: string | null
  completed_steps: Array<string>
  answers: Record<string, unknown>
  status: "in_progress" | "completed" | "skipped" | ((string & {}))
  started_at: string
  completed_at: string | null
  updated_at: string
}
export type AggregateRowsInput = {
  /** Filter. Which rows: a condition `{column, op, value}`, or `and`, `or`, `not` of them. */
  filter?: Filter | null
  /** Group by. A result for each value of these columns. */
  group_by?: (Array<string | ({
    /** Column. A time, of which parts are taken. */
    column: string
    /** Part. Rows of one hour, day, week, month or year belong together. */
    bucket?: "hour" | "day" | "week" | "month" | "year"
    /** Time zone. Where days begin: an IANA name. */
    timezone?: string
  })>) | null
  /** Figures. What is computed, 1 to 10. */
  aggregates: Array<{
    /** Figure. A number of rows or of different values, a sum, an average, the least or the greatest. */
    fn: "count" | "count_distinct" | "sum" | "avg" | "min" | "max"
    /** Column. Of which values. */
    column?: string | null
    /** Name. What it is called in the answer, such as `total`. */
    as: string
  }>
  /** Only results that match. A filter on the figures, by their names. */
  having?: Filter | null
  /** Order. By which columns, the first one first. */
  order?: Array<AggregateRowsInputOrder> | null
  /** Limit. How many rows at most; more than 1000 counts as 1000. Default: `100`. */
  limit?: number
  /** Deleted rows too. Also rows that were deleted and can be restored. Default: `false`. */
  include_deleted?: boolean
}
export type AggregateRowsInputOrder = {
  /** Column. By its values. */
  column: string
  /** Direction. Ascending or descending. Default: `"asc"`. */
  direction?: "asc" | "desc"
}
export type AiEmbeddings = {
  embeddings: Array<Array<number>>
  usage: {
    prompt_tokens: number
    total_tokens: number
  }
}
export type AiEmbeddingsReply = {
  data: AiEmbeddings
}
export type AiInvocation = {
  id: string
  kind: "invoke" | "evaluate" | "messages" | "embeddings" | ((string & {}))
  prompt: string | null
  version: number | null
  provider: string
  model: string
  user_id: string | null
  status: "running" | "succeeded" | "rejected" | "failed" | "cancelled" | ((string & {}))
  error_code: string | null
  input_tokens: number | null
  output_tokens: number | null
  is_estimated: boolean
  cost_usd: number | null
  finish_reason: string | null
  payload: unknown
  created_at: string
  finished_at: string | null
  user?: AiInvocationUser
}
export type AiInvocationCursorPage = {
  data: Array<AiInvocation>
  pagination: CurrencyTransactionPagination
}
export type AiInvocationUser = ChallengeLeaderboardUser | null
export type AiPrompt = {
  name: string
  description: string | null
  variables: Array<string>
  cost: {
    currency_code: string
    amount: number
  } | null
}
export type AiPromptBudget = {
  budget_usd: number | null
  budget_period: "daily" | "monthly" | "total" | ((string & {}))
  period_spend_usd: number
  remaining_usd: number | null
  exceeded: boolean
}
export type AiPromptBudgetReply = {
  data: AiPromptBudget
}
export type AiPromptDetail = CreateAiPromptResult & ({
  system_prompt: string | null
  max_tokens: number
  rate_limit: AiPromptDetailRateLimit
  description: string | null
  log_payloads: boolean
  cost: {
    currency_code: string
    amount: number
  } | null
  created_at: string
  updated_at: string
})
export type AiPromptDetailPage = {
  data: Array<AiPromptDetail>
  total: number
  offset: number
  limit: number
}
export type AiPromptDetailRateLimit = ({
  window: number
  max: number
  key: "user" | "ip" | "project" | ((string & {}))
}) | null
export type AiPromptDetailReply = {
  data: AiPromptDetail
}
export type AiPromptList = {
  data: Array<AiPrompt>
}
export type AiPromptSpend = {
  name: string
  period: "daily" | "monthly" | "total" | ((string & {}))
  period_start: string
  spend_usd: number
  budget_usd: number | null
  exceeded: boolean
}
export type AiPromptSpendReply = {
  data: AiPromptSpend
}
export type AiPromptVersion = {
  version: number
  provider: string
  model: string
  system_prompt: string | null
  max_tokens: number
  rate_limit: AiPromptDetailRateLimit
  client_invokable: boolean
  description: string | null
  log_payloads: boolean
  cost: {
    currency_code: string
    amount: number
  } | null
  created_at: string
}
export type AiPromptVersionPage = {
  data: Array<AiPromptVersion>
  total: number
  offset: number
  limit: number
}
export type AiProvider = {
  name: "anthropic" | "openai" | "google" | "mistral" | ((string & {}))
  configured: boolean
  api_key_preview: string
}
export type AiProviderList = {
  data: Array<AiProvider>
}
export type AiProviderReply = {
  data: AiProvider
}
export type AiUsage = {
  date: string
  calls: number
  input_tokens: number
  output_tokens: number
}
export type AiUsageReply = {
  data: AiUsage
}
export type ApiKey = {
  key: string
  prefix: string
  type: "client" | "server" | ((string & {}))
  environment: "development" | "production" | ((string & {}))
}
export type ApiKeyReply = {
  data: ApiKey
}
export type AppSession = {
  id: string
  app_user_id: string
  started_at: string
  ended_at: string | null
  duration_seconds: number | null
  user?: AiInvocationUser
}
export type AppSessionAnalytics = {
  period: "24h" | "7d" | "30d" | "90d" | ((string & {}))
  dau: number
  period_active_users: number
  total_sessions: number
  avg_duration_seconds: number | null
  median_duration_seconds: number | null
  is_estimate: boolean
  margin: number
}
export type AppSessionAnalyticsReply = {
  data: AppSessionAnalytics
}
export type AppSessionPage = {
  data: Array<AppSession>
  total: number
  offset: number
  limit: number
}
export type ApplyMonetizationInput = {
  /** Plan. The `plan_hash` of the plan that is applied. */
  plan_hash: string
  /** Confirmation. The same again, where the plan ends something. */
  confirm?: string
  /** Also what customers have. Detaches products by which somebody has access now. Default: `false`. */
  allow_detach_live?: boolean
  /** What differs. `service` makes the provider as declared, `adopt` declares what the provider has. Default: `"service"`. */
  reconcile?: "service" | "adopt"
}
export type ApplyMonetizationReply = {
  data: ApplyMonetizationResult
}
export type ApplyMonetizationResult = {
  provider: "revenuecat"
  operation_id: string
  status: "started" | "confirm_sent" | ((string & {}))
  plan_hash: string
  confirm_required: boolean
  gated: Array<{
    op: "create" | "update" | "archive" | "attach" | "detach" | "set-current" | ((string & {}))
    object_type: "entitlement" | "product" | "offering" | "paywall" | "package" | "store_product" | ((string & {}))
    identifier: string
    reason: string
  }>
  refused: Array<{
    op: "create" | "update" | "archive" | "attach" | "detach" | "set-current" | ((string & {}))
    object_type: "entitlement" | "product" | "offering" | "paywall" | "package" | "store_product" | ((string & {}))
    identifier: string
    code: string
    manual_step: string
  }>
}
export type ApplyPromotionInput = {
  /** Plan. The `plan_hash` of the plan that is applied. */
  plan_hash: string
  /** Confirmation. The same again, where the plan deletes something. */
  confirm?: string
}
export type ApplyPromotionReply = {
  data: ApplyPromotionResult
}
export type ApplyPromotionResult = {
  operation_id: string
  status: "waiting" | "succeeded" | ((string & {}))
  plan_hash: string
  confirm_required: boolean
}
export type ApproveModerationItemInput = {
  /** Note. For other moderators. */
  note?: string
}
export type ApproveModerationItemResult = {
  id: string
  subject_type: ModerationQueueSubjectType
  subject_id: string
  subject_user_id: string | null
  snapshot: Record<string, unknown>
  source: "report" | "rule" | ((string & {}))
  rule_id: string | null
  reasons: Record<string, unknown>
  report_count: number
  priority: number
  status: "pending" | "approved" | "rejected" | "escalated" | ((string & {}))
  is_hidden: boolean
  moderator_id: string | null
  resolved_at: string | null
  note: string | null
  created_at: string
}
export type AwardXpInput = {
  /** XP. How many points; a negative number deducts. */
  amount: number
  /** Reason. Why, for the records. */
  reason?: string | null
  /** User. The id of the user. */
  app_user_id?: string
}
export type BackfillAchievementInput = {
  /** Notify. Sends webhooks and pushes for what unlocks now. Default: `false`. */
  notify?: boolean
}
export type BeginRedirectSignInInput = {
  /** Provider. Its name in this project. */
  provider: string
  /** Return to. One of the redirect addresses. */
  redirect_to?: string
  /** Code challenge. The SHA-256 of the code verifier in base64url (PKCE). */
  code_challenge: string
  /** Method. How the challenge was made. Default: `"S256"`. */
  code_challenge_method?: "S256"
  /** Scopes. What is asked of the provider beside the usual. */
  scopes?: Array<string>
  /** Login hint. The address that the provider fills in. */
  login_hint?: string
  /** Prompt. What the provider asks again, such as `select_account`. */
  prompt?: string
}
export type Billing = {
  tier: "free" | "pro" | "enterprise" | ((string & {}))
  effective_tier: "free" | "pro" | "enterprise" | ((string & {}))
  comped: boolean
  limits: {
    mau: number | null
    events: number | null
    api_requests: number | null
    storage_bytes: number | null
    egress_bytes: number | null
    push_sent: number | null
    emails_sent: number | null
    ai_spend_usd: number | null
    function_ms: number | null
    media_storage: number | null
  }
  usage: {
    mau: BillingMau
    events: BillingMau
    api_requests: BillingMau
    storage_bytes: BillingMau
    egress_bytes: BillingMau
    push_sent: BillingMau
    emails_sent: BillingMau
    ai_spend_usd: BillingMau
    function_ms: BillingMau
    media_storage: BillingMau
  }
  period: {
    start: string
    end: string
  }
  subscription: CancelSubscriptionResult | null
  spend_ceiling_usd: number | null
  configured: boolean
}
export type BillingMau = {
  used: number
  limit: number | null
}
export type BillingPortal = {
  url: string
}
export type BillingPortalReply = {
  data: BillingPortal
}
export type BillingReply = {
  data: Billing
}
export type BlockedUser = {
  user: FriendUser
  created_at: string
}
export type BlockedUserPage = {
  data: Array<BlockedUser>
  total: number
  offset: number
  limit: number
}
export type BlockedUserReply = {
  data: BlockedUser
}
export type BroadcastRealtimeInput = {
  /** Channel. Such as `room:lobby`. */
  channel: string
  /** Event. What listeners are told has happened. */
  event: string
  /** Data. Any JSON, as listeners get it. */
  payload: unknown
}
export type BroadcastRealtimeReply = {
  data: BroadcastRealtimeResult
}
export type BroadcastRealtimeResult = {
  delivered_to: number
}
export type BulkUpdateUsersInput = {
  /** Changes. Of up to 1000 users, each by id, external id or anonymous id. */
  updates: Array<{
    /** User. The id of the user. */
    user_id?: string
    /** External id. The id of the user in a system of yours. */
    external_id?: string
    /** Anonymous id. The id of a device: `anon_` and 32 to 128 characters. */
    anonymous_id?: string
    /** Properties. Keys are merged. */
    properties?: Record<string, unknown>
    /** Remove properties. The names of properties that end. */
    unset_properties?: Array<string>
    /** Fields. Fields of the user that change. */
    set?: {
      /** Display name. The name that others see. */
      display_name?: string
      /** Avatar. The address of a picture. */
      avatar_url?: string | null
      /** External id. The id of the user in a system of yours. */
      external_id?: string | null
      /** Email address. */
      email?: string | null
      /** Phone number. In international form, such as `+4915112345678`. */
      phone?: string | null
      /** Time zone. An IANA name, such as `Europe/Berlin`. */
      timezone?: string | null
    }
    /** Add to segments. Ids or keys of static segments. */
    add_segments?: Array<string>
    /** Take from segments. Ids or keys of static segments. */
    remove_segments?: Array<string>
  }>
}
export type BulkUpdateUsersReply = {
  data: BulkUpdateUsersResult
}
export type BulkUpdateUsersResult = {
  updated: number
  failed: number
  results: Array<{
    index: number
    user_id: string | null
    status: "updated" | "failed" | ((string & {}))
    code?: string
    message?: string
  }>
}
export type CancelEmailMessageReply = {
  data: CancelEmailMessageResult
}
export type CancelEmailMessageResult = {
  id: string
  user_id: string | null
  to: string
  from: string | null
  reply_to: string | null
  subject: string
  template_key: string | null
  template_version: number | null
  locale: string | null
  category: string
  status: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed" | "cancelled" | "suppressed" | ((string & {}))
  attempts: number
  send_at: string | null
  next_attempt_at: string | null
  last_error: string | null
  sent_at: string | null
  track: boolean
  opened_at: string | null
  clicked_at: string | null
  created_at: string
  updated_at: string
}
export type CancelSubscriptionReply = {
  data: CancelSubscriptionResult
}
export type CancelSubscriptionResult = {
  tier: "pro" | "enterprise" | ((string & {}))
  status: "trialing" | "active" | "past_due" | "ended" | ((string & {}))
  ends_at: string | null
  cancel_at_period_end: boolean
}
export type CatalogItem = {
  id: string
  key: string
  item_type: "consumable" | "durable" | "bundle" | "currency_pack" | ((string & {}))
  name: string
  description: string | null
  icon_url: string | null
  category: string | null
  tags: Array<string>
  metadata: Record<string, unknown>
  max_owned: number | null
  duration_seconds: number | null
  use_effect: Reward | null
  is_active: boolean
  catalog_item_prices: Array<{
    currency_code: string
    price: number
  }>
  bundle_contents: Array<{
    content_item_id: string
    quantity: number
    catalog_items: {
      key: string
      name: string
      icon_url: string | null
    }
  }>
  created_at: string
  updated_at: string
}
export type CatalogItemPage = {
  data: Array<CatalogItem>
  total: number
  offset: number
  limit: number
}
export type CatalogItemReply = {
  data: CatalogItem
}
export type Challenge = ChallengeDefinition & ({
  my: ({
    status: "in_progress" | "completed" | "expired" | "left" | ((string & {}))
    progress: number
    ratio: number
    completed_at: string | null
    team?: ({
      group_id: string
      progress: number
      members: number
      reached_at: string | null
    }) | null
  }) | null
  participants_count: number
})
export type ChallengeDaily = {
  from: string
  to: string
  timezone: string
  series: {
    joined: Array<{
      date: string
      value: number
    }>
    completed: Array<{
      date: string
      value: number
    }>
  }
}
export type ChallengeDailyReply = {
  data: ChallengeDaily
}
export type ChallengeDefinition = {
  id: string
  name: string
  description: string | null
  start_at: string
  end_at: string
  goal_type: "event_count" | "xp_earned" | "streak_maintained" | ((string & {}))
  goal_value: number
  event_name: string | null
  reward_xp: number
  reward_achievement_id: string | null
  is_active: boolean
  reward: Reward | null
  segment_id: string | null
  recurrence: "none" | "daily" | "weekly" | "monthly" | ((string & {}))
  team_mode: "none" | "group" | ((string & {}))
  parent_id: string | null
  status: "active" | "upcoming" | "ended" | ((string & {}))
  created_at: string
  updated_at: string
}
export type ChallengeDefinitionPage = {
  data: Array<ChallengeDefinition>
  total: number
  offset: number
  limit: number
}
export type ChallengeDefinitionReply = {
  data: ChallengeDefinition
}
export type ChallengeLeaderboard = {
  rank: number
  progress: number
  status: "in_progress" | "completed" | "expired" | "left" | ((string & {}))
  completed_at: string | null
  user: ChallengeLeaderboardUser
}
export type ChallengeLeaderboardList = {
  data: Array<ChallengeLeaderboard>
}
export type ChallengeLeaderboardUser = {
  id: string
  display_name: string | null
  avatar_url: string | null
}
export type ChallengePage = {
  data: Array<Challenge>
  total: number
  offset: number
  limit: number
}
export type ChallengeParticipant = {
  challenge_id: string
  app_user_id: string
  joined_at: string
  progress: number
  goal_value: number
  status: "in_progress" | "completed" | "expired" | "left" | ((string & {}))
  completed_at: string | null
  rank: number | null
  group_id?: string | null
  app_users: FriendUser
}
export type ChallengeParticipantPage = {
  data: Array<ChallengeParticipant>
  total: number
  offset: number
  limit: number
}
export type ChallengeReply = {
  data: Challenge
}
export type CheckRoleReply = {
  data: CheckRoleResult
}
export type CheckRoleResult = {
  allowed: boolean
}
export type CheckTlsDomainReply = {
  data: CheckTlsDomainResult
}
export type CheckTlsDomainResult = {
  domain: string
}
export type Checkout = {
  checkout_url: string
}
export type CheckoutReply = {
  data: Checkout
}
export type ClaimReferralInput = {
  /** Code. Letters and digits, such as `SPRING-24`. */
  code: string
}
export type ClaimReferralReply = {
  data: ClaimReferralResult
}
export type ClaimReferralResult = {
  claim: {
    id: string
    code: string
    claimed_at: string
  }
  reward: Record<string, unknown>
}
export type Client = {
  user_id: string
  client_id: string
  checkpoint: string | null
  last_pull_at: string | null
  last_push_at: string | null
  created_at: string
}
export type ClientPage = {
  data: Array<Client>
  total: number
  offset: number
  limit: number
}
export type CloseLeaderboardRunReply = {
  data: CloseLeaderboardRunResult
}
export type CloseLeaderboardRunResult = {
  key: string
  status: "open" | "closed" | ((string & {}))
  starts_at: string | null
  ends_at: string | null
}
export type CloseLeagueRunInput = {
  /** Run. The run that is meant, so that none is closed twice. */
  run_key?: string
}
export type Collection = {
  name: string
  description: string | null
  columns: Array<CollectionColumn>
  indexes: Array<CollectionIndex>
  owner_scope: "user" | "group" | ((string & {}))
  read_policy: string
  write_policy: string
  sync: boolean
  realtime: boolean
  row_count_estimate: number
  schema_version: number
  graphql_name: string | null
  created_at: string
  updated_at: string
}
export type CollectionColumn = {
  name: string
  type: CollectionColumnType
  nullable: boolean
  default: unknown
  unique: boolean
  max_length: number | null
  min: number | string | null
  max: number | string | null
  enum: Array<unknown> | null
  references: ({
    collection: string
    on_delete: "set_null" | "cascade" | "restrict" | ((string & {}))
  }) | null
  dimensions: number | null
  moderated: boolean
  graphql_name: string | null
}
export type CollectionColumnReply = {
  data: CollectionColumn
}
export type CollectionColumnType = "text" | "integer" | "bigint" | "numeric" | "double" | "boolean" | "uuid" | "date" | "timestamptz" | "jsonb" | "vector" | "text[]" | "integer[]" | "bigint[]" | "numeric[]" | "boolean[]" | "uuid[]"
export type CollectionIndex = {
  name: string
  columns: Array<string>
  unique: boolean
  method: "btree" | "gin" | "trgm" | "hnsw" | ((string & {}))
  where: Record<string, unknown> | null
  is_ready: boolean
}
export type CollectionIndexReply = {
  data: CollectionIndex
}
export type CollectionPage = {
  data: Array<Collection>
  total: number
  offset: number
  limit: number
}
export type CollectionReply = {
  data: Collection
}
export type CollectionTypes = {
  typescript: string
  json_schema: Record<string, {
    row: Record<string, unknown>
    input: Record<string, unknown>
  }>
}
export type CollectionTypesReply = {
  data: CollectionTypes
}
export type CommitMediaUploadInput = {
  /** Upload. The id that the upload was registered with. */
  upload_id: string
  /** File. The id of the file. */
  asset_id: string
}
export type ConfigKey = {
  key: string
  value: unknown
  value_type: "string" | "number" | "boolean" | "json" | ((string & {}))
  description: string | null
  default_value: unknown
  conditions: Array<{
    value: unknown
  } & Record<string, unknown>>
  version: number
  created_at: string
  updated_at: string
}
export type ConfigKeyList = {
  data: Array<ConfigKey>
}
export type ConfigKeyReply = {
  data: ConfigKey
}
export type ConsumeInventoryItemInput = {
  /** Quantity. How many. Default: `1`. */
  quantity?: number
}
export type ConsumeInventoryItemReply = {
  data: ConsumeInventoryItemResult
}
export type ConsumeInventoryItemResult = {
  item: {
    key: string
    name: string
    item_type: "consumable" | "durable" | "bundle" | "currency_pack" | ((string & {}))
    icon_url: string | null
  }
  quantity: number
  effect: Record<string, unknown> | null
}
export type Content = {
  id: string
  key: string
  content_type: string
  locale: string
  fallback: boolean
  fields: Record<string, unknown>
  tags: Array<string>
  published_at: string | null
  version: number
}
export type ContentPage = {
  data: Array<Content>
  total: number
  offset: number
  limit: number
}
export type ContentReply = {
  data: Content
}
export type ContentType = {
  type: string
  fields: Array<{
    name: string
    type: "text" | "markdown" | "number" | "boolean" | "date" | "media" | "reference" | "json" | ((string & {}))
    required: boolean
    localized: boolean
  }>
  created_at: string
  updated_at: string
}
export type ContentTypePage = {
  data: Array<ContentType>
  total: number
  offset: number
  limit: number
}
export type ContentTypeReply = {
  data: ContentType
}
export type ContentVersion = {
  locale: string
  version: number
  fields: Record<string, unknown>
  author: OrganizationAuditEventTarget
  created_at: string
}
export type ContentVersionPage = {
  data: Array<ContentVersion>
  total: number
  offset: number
  limit: number
}
export type ContentVersionReply = {
  data: ContentVersion
}
export type ControlPlaneWebhook = {
  id: string
  organization_id: string
  event_types: Array<string>
  target_url: string
  status: "active" | "disabled" | "degraded" | ((string & {}))
  created_at: string
  updated_at: string
}
export type ControlPlaneWebhookDelivery = {
  id: string
  webhook_id: string
  event_id: string
  event_name: string
  idempotency_key: string
  status: "pending" | "delivered" | "failed" | "dlq" | ((string & {}))
  failed_reason: WebhookDeliveryDetailFailedReason
  attempt_count: number
  next_attempt_at: string | null
  held_until: string | null
  created_at: string
  settled_at: string | null
  attempts: Array<{
    n: number
    at: string
    status_code: number | null
    error: string | null
    duration_ms: number
    response_excerpt: string | null
  }>
}
export type ControlPlaneWebhookDeliveryCursorPage = {
  data: Array<ControlPlaneWebhookDelivery>
  pagination: CurrencyTransactionPagination
}
export type ControlPlaneWebhookDeliveryReply = {
  data: ControlPlaneWebhookDelivery
}
export type ControlPlaneWebhookPage = {
  data: Array<ControlPlaneWebhook>
  total: number
  offset: number
  limit: number
}
export type ControlPlaneWebhookReply = {
  data: ControlPlaneWebhook
}
export type Conversation = {
  id: string
  type: "direct" | "group" | ((string & {}))
  name: string | null
  owner_id: string | null
  conversation_participants: Array<MarkConversationReadResult>
  last_message: ConversationLastMessage
  message_count: number
  last_activity_at: string
  created_at: string
  updated_at: string
  unread: number
  mentions: number
  muted_until: string | null
  archived: boolean
}
export type ConversationLastMessage = ({
  id: string
  sender_id: string | null
  body: string
  message_type: string
  created_at: string
}) | null
export type ConversationPage = {
  data: Array<Conversation>
  total: number
  offset: number
  limit: number
}
export type ConversationReply = {
  data: Conversation
}
export type CreateAccessTokenInput = {
  /** Name. What the token is for, such as `Deployment`. */
  name: string
  /** Scopes. What it may do, such as `streaks:write`. Default: `["*:write"]`. */
  scopes?: Array<string>
  /** Projects. The ids of the only projects that it reaches. Default: `null`. */
  project_ids?: Array<string> | null
  /** Valid for. Days, at most 365; null is for ever. Default: `90`. */
  expires_in_days?: number | null
}
export type CreateAccessTokenReply = {
  data: CreateAccessTokenResult
}
export type CreateAccessTokenResult = AccessToken & {
  token: string
}
export type CreateAchievementDefinitionInput = UpdateAchievementDefinitionInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  criteria: Criteria
  description?: string | null
  icon_url?: string | null
  xp_reward?: number
  is_hidden?: boolean
  sort_order?: number
  is_active?: boolean
})
export type CreateAiEmbeddingsInput = {
  /** Provider. Whose model is called. */
  provider: "openai"
  /** Model. As the provider names it. */
  model: string
  /** Texts. One text, or up to 2048. */
  input: string | Array<string>
}
export type CreateAiPromptInput = {
  /** Name. The name in calls, such as `greeter`. */
  name: string
  /** Provider. Whose model is called. */
  provider: "anthropic" | "openai" | "google" | "mistral" | "echo"
  /** Model. As the provider names it. */
  model: string
  /** System prompt. What the model is told first; marks such as `{{user.display_name}}` are filled in. Default: `null`. */
  system_prompt?: string | null
  /** Longest answer. In tokens, about four characters each. Default: `4096`. */
  max_tokens?: number
  /** Rate limit. How often it may be called. Default: `null`. */
  rate_limit?: ({
    /** Seconds. In how many seconds. */
    window: number
    /** Calls. How many calls. */
    max: number
    /** Per. Each user, each address, or the whole project. Default: `"user"`. */
    key?: "user" | "ip" | "project"
  }) | null
  /** Apps may call it. Otherwise only administrators. Default: `false`. */
  client_invokable?: boolean
  /** Description. A note about what it is for. Default: `null`. */
  description?: string | null
  /** Keep texts. The log has what was asked and answered. Default: `false`. */
  log_payloads?: boolean
  /** Costs the user. An amount of a currency for each call. Default: `null`. */
  cost?: {
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
    /** Amount. For each call. */
    amount: number
  } | null
}
export type CreateAiPromptReply = {
  data: CreateAiPromptResult
}
export type CreateAiPromptResult = {
  name: string
  version: number
  provider: string
  model: string
  client_invokable: boolean
}
export type CreateAiProviderInput = {
  /** Name. The name in calls, such as `greeter`. */
  name: "anthropic" | "openai" | "google" | "mistral"
  /** Key. A key of the provider; it is stored encrypted and not shown again. */
  api_key: string
}
export type CreateApiKeyInput = {
  /** Kind. Client keys are public and go into apps; server keys are secret. */
  key_type: "client" | "server"
  /** Environment. Development allows sessions for tests and providers that only write a log. */
  environment: "development" | "production"
}
export type CreateCatalogItemDefinitionInput = UpdateCatalogItemDefinitionInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  /** Kind. Consumable: used up. Durable: owned once. Bundle: other items. Currency pack: credits at once. It never changes. */
  item_type: "consumable" | "durable" | "bundle" | "currency_pack"
  description?: string | null
  icon_url?: string | null
  category?: string | null
  tags?: Array<string>
  metadata?: Record<string, unknown>
  max_owned?: number | null
  duration_seconds?: number | null
  use_effect?: Reward | null
  is_active?: boolean
  /** Prices. One for each currency that buys it. Default: `[]`. */
  prices?: Array<{
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
    /** Price. How much of the currency it costs. */
    price: number
  }>
  /** Contents. What a bundle consists of. Default: `[]`. */
  bundle_contents?: Array<{
    /** Item. The key of another item. */
    content_item_key: string
    /** Quantity. How many of it. */
    quantity: number
  }>
})
export type CreateChallengeDefinitionInput = UpdateChallengeDefinitionInput & ({
  name: string
  start_at: string
  end_at: string
  goal_type: "event_count" | "xp_earned" | "streak_maintained"
  goal_value: number
  description?: string | null
  event_name?: string | null
  reward_xp?: number
  reward_achievement_id?: string | null
  is_active?: boolean
  reward?: Reward | null
  segment_id?: string | null
  recurrence?: "none" | "daily" | "weekly" | "monthly"
  team_mode?: "none" | "group"
})
export type CreateCheckoutInput = {
  /** Plan. What is bought. */
  tier: "pro" | "enterprise"
}
export type CreateCollectionColumnInput = UpdateCollectionColumnInput & ({
  name: string
  type: CollectionColumnType
  nullable?: boolean
  default?: unknown
  /** Unique. No two rows have the same value. Default: `false`. */
  unique?: boolean
  max_length?: number | null
  min?: (number | string) | null
  max?: (number | string) | null
  enum?: Array<unknown> | null
  /** Refers to. Rows of another collection, by their id. */
  references?: ({
    /** Collection. The name of a collection. */
    collection: string
    /** When that row is deleted. Clears it, deletes this row too, or refuses the deletion. Default: `"set_null"`. */
    on_delete?: "set_null" | "cascade" | "restrict"
  }) | null
  /** Dimensions. How many numbers a vector has. */
  dimensions?: number | null
  moderated?: boolean
})
export type CreateCollectionIndexInput = {
  /** Name. Small letters, digits and _. */
  name?: string
  /** Columns. In the order of the index. */
  columns: Array<string>
  /** Unique. No two rows have the same values. Default: `false`. */
  unique?: boolean
  /** Kind. `btree` for values, `gin` for lists and JSON, `trgm` for words, `hnsw` for vectors. Default: `"btree"`. */
  method?: "btree" | "gin" | "trgm" | "hnsw"
  /** Only rows that match. A filter: the index has no other rows. */
  where?: Record<string, unknown> | null
}
export type CreateCollectionIndexReply = {
  data: CreateCollectionIndexResult
}
export type CreateCollectionIndexResult = {
  operation_id: string
  status: "queued"
}
export type CreateCollectionInput = UpdateCollectionInput & ({
  /** Name. The name of the table: small letters, digits and _, such as `notes`. It never changes. */
  name: string
  /** Columns. Beside `id`, the owner and the times, which every table has. Default: `[]`. */
  columns?: Array<CreateCollectionColumnInput>
  /** Indexes. For fast searching by columns. Default: `[]`. */
  indexes?: Array<CreateCollectionIndexInput>
  owner_scope?: "user" | "group"
  read_policy?: string
  write_policy?: string
  sync?: boolean
  realtime?: boolean
})
export type CreateCollectionReply = {
  data: CreateCollectionResult
}
export type CreateCollectionResult = {
  sql: Array<string>
  rewrites_table: boolean
  rows: number
  estimated_ms: number
  warnings: Array<string>
}
export type CreateConfigKeyInput = UpdateConfigKeyInput & ({
  /** Key. The name in code, such as `lesson_length`. It never changes. */
  key: string
  value: unknown
  /** Type. What kind of value it is. Default: `"string"`. */
  value_type?: "string" | "number" | "boolean" | "json"
  description?: string | null
  conditions?: Array<{
    /** Segment. Users who are in this segment. */
    segment_id?: string | null
    /** Share of users. In percent, 0 to 100. */
    percentage?: number | null
    /** Value. What these users get. */
    value: unknown
  } & Record<string, unknown>>
})
export type CreateContentInput = UpdateContentInput & ({
  /** Key. The name in code, such as `welcome`: letters, digits, _, . and -. It never changes. */
  key: string
  /** Type. What kind of entry it is, such as `article`. It never changes. */
  content_type: string
  default_locale?: string
  segment_id?: string | null
  starts_at?: string | null
  ends_at?: string | null
  sort_order?: number
  /** Fields. The texts and values in the default language. */
  fields?: Record<string, unknown>
})
export type CreateContentPage = {
  data: Array<CreateContentResult>
  total: number
  offset: number
  limit: number
}
export type CreateContentReply = {
  data: CreateContentResult
}
export type CreateContentResult = {
  id: string
  key: string
  content_type: string
  default_locale: string
  locales: Record<string, {
    status: "draft" | "published" | "scheduled" | ((string & {}))
    fields: Record<string, unknown>
    version: number
    published_version: number | null
    published_at: string | null
    publish_at: string | null
  }>
  tags: Array<string>
  segment_id: string | null
  starts_at: string | null
  ends_at: string | null
  sort_order: number
  version: number
  created_at: string
  updated_at: string
}
export type CreateControlPlaneWebhookInput = {
  /** Address. A public https address of yours that takes a POST. */
  target_url: string
  /** Events. Such as `project.created`; `*` is all of them. */
  event_types: Array<"*" | "project.created" | "project.deleted" | "project.provisioned" | "project.provisioning_failed" | "api_key.created" | "api_key.revoked" | "member.joined" | "member.removed" | "deployment.ready" | "deployment.failed" | "quota.warning" | "quota.exceeded" | "webhook.degraded" | "domain.verified" | "audit.event">
  /** Organization. Whose events. */
  organization_id?: string
}
export type CreateControlPlaneWebhookReply = {
  data: CreateControlPlaneWebhookResult
}
export type CreateControlPlaneWebhookResult = ControlPlaneWebhook & {
  secret: string
}
export type CreateConversationInput = {
  /** Kind. Between two users, or of a group. Default: `"direct"`. */
  type?: "direct" | "group"
  /** Name. What people read, in lists and in messages. */
  name?: string | null
  /** With. The ids of the other users. */
  participant_ids: Array<string>
}
export type CreateCurrencyDefinitionInput = UpdateCurrencyDefinitionInput & ({
  /** Code. Capital letters, digits and _, such as `COINS`. It never changes. */
  code: string
  name: string
  icon_url?: string | null
  initial_grant?: number
  max_balance?: number
  client_spendable?: boolean
  regen?: CreateCurrencyDefinitionInputRegen
  expiry_days?: number | null
  is_active?: boolean
})
export type CreateCurrencyDefinitionInputRegen = {
  /** Amount. How much is added each time. */
  amount: number
  /** Every. Seconds from one addition to the next. */
  every_seconds: number
  /** Up to. At this balance regeneration stops. */
  cap: number
} | null
export type CreateCurrencyTransactionInput = {
  /** User. The id of the user. */
  app_user_id: string
  /** Changes. Of up to ten currencies, all or nothing. */
  adjustments: Array<{
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
    /** Amount. How much is credited; a negative number debits. */
    amount: number
  }>
  /** Reason. Why, for the records. */
  reason: string
  /** Metadata. Any JSON object of your own, kept and returned as it is. Default: `{}`. */
  metadata?: Record<string, unknown>
  /** Expires at. The moment from which it counts no more. */
  expires_at?: string
}
export type CreateCurrencyTransactionReply = {
  data: CreateCurrencyTransactionResult
}
export type CreateCurrencyTransactionResult = {
  transactions: Array<CurrencyTransaction>
  balances: Record<string, number>
}
export type CreateDomainInput = {
  /** Domain. Such as `mail.example.com`. */
  domain: string
  /** For. Sending mail, a site, or functions. */
  kind: "email" | "site" | "function"
}
export type CreateEmailCampaignInput = UpdateEmailCampaignInput & ({
  name: string
  audience: CreateEmailCampaignInputAudience
  exclude_segment_id?: string | null
  throttle_per_minute?: number | null
  quiet_hours?: SetPushPreferencesInputQuietHour
  frequency_cap?: {
    /** Messages. How many a user may have got. */
    max: number
    /** Hours. In how many hours. */
    hours: number
  } | null
  goal_event?: string | null
  template_key: string
  from?: string | null
  track?: boolean
  variants?: Array<{
    /** Key. The name of the variant in statistics, such as `a`. */
    key: string
    /** Share. In percent of the users; who is beyond the sum gets nothing. */
    weight: number
    /** Template. What these users get. */
    template_key: string
  }>
  /** Workflow id. A text of your own: only one campaign is made with it. */
  workflow_id?: string | null
  send_at?: string | null
  /** Send now. Starts as soon as it is made. Default: `false`. */
  send_now?: boolean
})
export type CreateEmailCampaignInputAudience = {
  /** All users. Everybody but banned users. */
  all: true
} | {
  /** Segment. Users who are in it when the campaign starts. */
  segment_id: string
} | {
  /** Users. The ids of up to 10,000 users. */
  user_ids: Array<string>
} | {
  /** Filter. A filter on users: `email`, `timezone` and the like, or a property. */
  filter: Filter
}
export type CreateEmailCampaignInputSchedule = {
  /** Send at. Starts at this moment. */
  send_at?: string | null
  /** Mode. One moment for all, or the local time of each user. Default: `"absolute"`. */
  mode?: "absolute" | "user_local"
  /** Time of day. In the time zone of each user, such as `18:30`. */
  local_time?: string | null
  /** Weekdays. 1 is Monday, 7 Sunday. */
  weekdays?: Array<number> | null
}
export type CreateEmailCampaignReply = {
  data: CreateEmailCampaignResult
}
export type CreateEmailCampaignResult = {
  id: string
  workflow_id: string | null
  status: "scheduled"
}
export type CreateEmailSuppressionInput = {
  /** Address. */
  address: string
  /** Reason. Why it gets no mail. Default: `"manual"`. */
  reason?: "bounce" | "complaint" | "unsubscribe" | "manual"
  /** Category. What users can unsubscribe from, such as `news`. */
  category?: string | null
}
export type CreateEmailTemplateInput = UpdateEmailTemplateInput & ({
  /** Key. The name in calls, such as `receipt`; that of a built-in one replaces it. It never changes. */
  key: string
  name: string
  subject: string
  html?: string | null
  text?: string | null
  locales?: Record<string, unknown>
  category?: string
})
export type CreateFeedEntryInput = {
  /** Action. What happened, such as `workout.finished`. */
  action: string
  /** About. The id of what it is about. */
  target_id?: string | null
  /** Group. Only its members see it. */
  group_id?: string | null
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
}
export type CreateFlagInput = UpdateFlagInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  /** Type. What kind of value it gives. It never changes. Default: `"boolean"`. */
  value_type?: "boolean" | "string" | "number" | "json"
  name?: string
  description?: string | null
  is_enabled?: boolean
  off_value?: unknown
  default_value?: unknown
  rules?: Array<FlagRule>
  schedule?: Array<FlagStep>
  tags?: Array<string>
  owner?: string | null
})
export type CreateFriendshipInput = {
  /** User. The id of the user. */
  user_id: string
  /** Friend. The id of the other user. */
  friend_id: string
  /** Status. Friends at once, or a request that waits. Default: `"accepted"`. */
  status?: "accepted" | "pending"
}
export type CreateGraphqlInput = {
  /** Query. A document of GraphQL. */
  query: string
  /** Operation. Which of several in the document. */
  operationName?: string | null
  /** Variables. Values by name. */
  variables?: Record<string, unknown> | null
  /** Extensions. As clients send them; they have no effect. */
  extensions?: Record<string, unknown> | null
}
export type CreateGraphqlReply = {
  data?: Record<string, unknown> | null
  errors?: Array<{
    message: string
    locations?: Array<{
      line: number
      column: number
    }>
    path?: Array<string | number>
    extensions: {
      code: string
    } & Record<string, unknown>
  }>
}
export type CreateGroupInput = UpdateGroupInput & {
  name: string
  is_public?: boolean
  max_members?: number
  metadata?: Record<string, unknown>
}
export type CreateGroupInviteInput = {
  /** Uses. How many users can join by it. Default: `1`. */
  max_uses?: number
  /** Valid for. Hours. Default: `168`. */
  expires_in_hours?: number
  /** Role. Owner, admin, member, or viewer who only reads. Default: `"member"`. */
  role?: "owner" | "admin" | "member" | "viewer"
}
export type CreateIntegrationInput = {
  /** Provider. Such as `apns`, `fcm`, `smtp` or `revenuecat`. */
  provider: string
  /** Settings. Keys and the like, as the provider gives them; they are stored encrypted. */
  config: Record<string, unknown>
}
export type CreateLeaderboardDefinitionInput = UpdateLeaderboardDefinitionInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  description?: string | null
  source?: {
    /** Source. What makes scores. */
    type: "manual"
  } | ({
    /** Source. What makes scores. */
    type: "event"
    /** Event. The event that makes a score. */
    event_name: string
    /** Property with the score. A number among the properties of the event. */
    value_property?: string | null
    /** Only events that match. A filter on the properties of the event. */
    filter?: Filter | null
  }) | CreateLeaderboardDefinitionInputSource | {
    /** Source. What makes scores. */
    type: "currency"
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
  } | {
    /** Source. What makes scores. */
    type: "streak"
    /** Streak. The key of the streak whose length is the score. */
    streak_key: string
  }
  scoring?: "best" | "sum" | "last" | "count"
  sort?: "desc" | "asc"
  period?: "all_time" | "daily" | "weekly" | "monthly"
  timezone?: string
  starts_at?: string | null
  ends_at?: string | null
  segment_id?: string | null
  client_writable?: boolean
  min_score?: (number | string) | null
  max_score?: (number | string) | null
  max_per_minute?: number
  rewards?: Array<{
    /** From rank. The best rank that gets it; 1 is the first. */
    from_rank: number
    /** To rank. The last rank that gets it, included. */
    to_rank: number
    /** Reward. What each of these users gets. */
    reward: Reward
  }>
  keep_runs?: number
  is_active?: boolean
})
export type CreateLeaderboardDefinitionInputSource = {
  /** Source. What makes scores. */
  type: "xp"
}
export type CreateLeagueDefinitionInput = UpdateLeagueDefinitionInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  tiers: Array<{
    /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
    key: string
    /** Name. What people read. */
    name?: string
    /** Icon. The address of a picture. */
    icon_url?: string | null
    /** Promoted. How many of a cohort go up a tier. Default: `0`. */
    promote_count?: number
    /** Relegated. How many of a cohort go down a tier. Default: `0`. */
    relegate_count?: number
  }>
  cohort_size?: number
  period?: "daily" | "weekly" | "monthly"
  timezone?: string
  points?: CreateLeagueDefinitionInputPoint | ({
    /** Points. XP that is gained in the run, or events. */
    type: "event"
    /** Event. The event that gives points. */
    event_name: string
    /** Property with the points. A number among the properties of the event. */
    value_property?: string | null
  })
  min_points_to_join?: number
  inactive_relegates?: boolean
  rewards?: Array<{
    /** Tier. The key of the tier that the run was played in. */
    tier_key: string
    /** From rank. The best rank that gets it; 1 is the first. */
    from_rank: number
    /** To rank. The last rank that gets it, included. */
    to_rank: number
    /** Reward. What each of these users gets. */
    reward: Reward
  }>
  is_active?: boolean
})
export type CreateLeagueDefinitionInputPoint = {
  /** Points. XP that is gained in the run, or events. */
  type: "xp"
}
export type CreateMediaBucketInput = UpdateMediaBucketInput & ({
  is_public?: boolean
  file_size_limit?: number | null
  allowed_mime_types?: Array<string> | null
  /** Name. Letters, digits, `_`, `.` and `-`, such as `avatars`. It never changes. */
  name: string
})
export type CreateMediaCatalogDefinitionInput = UpdateMediaCatalogDefinitionInput & {
  /** Slug. The name in addresses, such as `avatars`. It never changes. */
  slug: string
  name: string
  is_public?: boolean
  asset_ids?: Array<string>
}
export type CreateMediaFolderInput = {
  /** Name. Such as `Banners`. */
  name: string
}
export type CreateMediaJobInput = {
  /** File. The id of the file. */
  asset_id: string
  /** Steps. What is done with the picture, in this order. */
  operations: Array<{
    /** Step. Change the size, cut, change the format, drop hidden data, or make a small picture. */
    type: "resize" | "crop" | "convert" | "strip_metadata" | "thumbnail"
    /** Width. In pixels. */
    width?: number
    /** Height. In pixels. */
    height?: number
    /** Fit. Cover fills the size and cuts off, contain shows all. Default: `"cover"`. */
    fit?: "cover" | "contain"
    /** Format. Of the new file. */
    format?: "webp" | "jpeg" | "png" | "avif"
    /** Quality. 1 to 100, of formats that lose detail. */
    quality?: number
  }>
}
export type CreateMediaJobReply = {
  data: CreateMediaJobResult
}
export type CreateMediaJobResult = {
  id: string
  status: "queued"
}
export type CreateModerationReportInput = {
  /** What is reported. A user, or something that a user wrote. */
  subject_type: "user" | "message" | "review" | "media" | "feed_entry" | "group" | "collection_row" | "content"
  /** Id. The id of it. */
  subject_id: string
  /** Reason. What is wrong with it. */
  reason: "spam" | "abuse" | "sexual" | "violence" | "self_harm" | "copyright" | "other"
  /** Details. In own words. */
  details?: string
}
export type CreateModerationReportReply = {
  data: CreateModerationReportResult
}
export type CreateModerationReportResult = {
  id: string
  status: "received" | "action_taken" | "no_action" | ((string & {}))
}
export type CreateModerationRuleInput = UpdateModerationRuleInput & ({
  name: string
  rule_type: "keyword" | "regex" | "report_threshold" | "rate" | "link" | "new_account"
  config?: Record<string, unknown>
  is_active?: boolean
})
export type CreateOnboardingFlowInput = UpdateOnboardingFlowInput & ({
  name: string
  steps: Array<{
    /** Id. The name of the step in code. */
    id?: string | null
    /** Kind. Text, a question, a permission, an action, a paywall, a field, or one of your own. */
    type?: "info" | "question" | "permission" | "action" | "paywall" | "input" | "custom"
    /** Title. What the user reads first. */
    title?: string | null
    /** Description. A note about what it is for. */
    description?: string | null
    /** Settings. As the kind of step takes them. */
    config?: Record<string, unknown>
    /** Can be skipped. Whether the user may go on without it. Default: `true`. */
    skippable?: boolean
    /** Segment. Only users in this segment. */
    segment_id?: string | null
  } & Record<string, unknown>>
  is_active?: boolean
})
export type CreateOnboardingFlowReply = {
  data: CreateOnboardingFlowResult
}
export type CreateOnboardingFlowResult = {
  id: string
  name: string
  steps: Array<{
    id: string
    type: "info" | "question" | "permission" | "action" | "paywall" | "input" | "custom" | ((string & {}))
    title: string | null
    description: string | null
    config: Record<string, unknown>
    skippable: boolean
    segment_id: string | null
  } & Record<string, unknown>>
  is_active: boolean
  created_at: string
  updated_at: string
}
export type CreateOperatorTokenInput = {
  /** Project. The id of the one project that it is for. */
  project_id?: string | null
  /** Organization. The id of the organization that it is for. */
  organization_id?: string | null
  /** Scopes. What it may do, such as `users:read`. */
  scopes: Array<string>
  /** Valid for. Seconds, at most 90 days. Default: `3600`. */
  expires_in_seconds?: number
  /** Label. For your records. */
  label?: string | null
  /** On behalf of. Who acts, for the audit trail: a name or an id of yours. */
  actor?: string | null
}
export type CreateOperatorTokenReply = {
  data: CreateOperatorTokenResult
}
export type CreateOperatorTokenResult = OperatorToken & {
  token: string
}
export type CreateOrganizationInput = {
  /** Name. What people read, in lists and in messages. */
  name: string
}
export type CreateOrganizationInviteInput = {
  /** Email address. */
  email: string
  /** Role. Viewers read, developers build, admins manage people and keys, owners may do all. */
  role: "viewer" | "developer" | "admin" | "owner"
}
export type CreateProjectInput = {
  /** Name. What your team calls it; users see it in mails. */
  name: string
  /** Bundle id. Of the app at Apple, such as `com.example.garden`: for signing in with Apple. */
  bundle_id?: string | null
  /** Google client id. For signing in with Google. */
  google_oauth_client_id?: string | null
  /** Platform. Where the app runs. Default: `"all"`. */
  platform?: "ios" | "android" | "all"
  /** Environment. Development allows sessions for tests and providers that only write a log. Default: `"production"`. */
  environment?: "development" | "production"
  /** Organization. To whom the project belongs. */
  organization_id?: string
}
export type CreateProjectReply = {
  data: CreateProjectResult
}
export type CreateProjectResult = {
  project: TransferResult
  api_keys: {
    client: CreateProjectResultClient
    server: CreateProjectResultClient
  }
  provisioning_status: "provisioning" | "failed" | ((string & {}))
}
export type CreateProjectResultClient = {
  key: string
  prefix: string
  type: "client" | "server" | ((string & {}))
}
export type CreatePurchaseRefundInput = {
  /** Take the items. Off: the user keeps what was given. Default: `true`. */
  revoke_items?: boolean
  /** Also when something is missing. Takes what is there. Default: `false`. */
  force?: boolean
  /** Reason. Why, for the audit trail. */
  reason?: string | null
}
export type CreatePushAutomationInput = UpdatePushAutomationInput & ({
  /** Key. Its name in statistics, such as `streak-at-risk`. It never changes. */
  key: string
  trigger: CreatePushAutomationInputTrigger
  delay_seconds?: number
  cancel_if_event?: string | null
  frequency_cap?: {
    /** Messages. How many a user may have got. */
    max: number
    /** Hours. In how many hours. */
    hours: number
  } | null
  quiet_hours?: SetPushPreferencesInputQuietHour
  inbox?: boolean
  is_active?: boolean
})
export type CreatePushAutomationInputMessage = {
  /** Title. `{{display_name|friend}}` is filled in for each user. */
  title: string
  /** Text. Marks such as `{{name|friend}}` are filled in for each user. */
  body: string
  /** Data. A JSON object for the app, at most 3 KB. */
  data?: Record<string, unknown>
  /** Image. An https address. */
  image_url?: string
  /** Link into the app. What opens at a tap, such as `myapp://lessons`. */
  deep_link?: string
  /** Sound. The name of a sound of the app, or `default`. */
  sound?: string
  /** Badge. The number at the icon; `increment` is that of unread items in the inbox. */
  badge?: number | "increment"
  /** Category. What users can switch off, such as `news`. */
  category?: string
  /** Replaces. A new message with the same word replaces an old one on the device. */
  collapse_key?: string
  /** Lifetime. Seconds in which a device that is offline still gets it. Default: `86400`. */
  ttl_seconds?: number
  /** Priority. High wakes the device up. Default: `"high"`. */
  priority?: "high" | "normal"
  /** Translations. Title and text by language, such as `{"de": {"title": "Hallo"}}`. */
  localized?: Record<string, {
    /** Title. In this language. */
    title?: string
    /** Text. In this language. */
    body?: string
  }>
}
export type CreatePushAutomationInputTrigger = ({
  /** Event. The event that causes the message. */
  event_name: string
  /** Only events that match. A filter on the properties of the event. */
  filter?: Filter | null
}) | ({
  /** Segment. Entering or leaving it causes the message. */
  segment_id: string
  /** When. As a user enters or leaves the segment. */
  on: "entered" | "exited"
})
export type CreatePushCampaignInput = UpdatePushCampaignInput & ({
  name: string
  audience: CreateEmailCampaignInputAudience
  exclude_segment_id?: string | null
  throttle_per_minute?: number | null
  quiet_hours?: SetPushPreferencesInputQuietHour
  frequency_cap?: {
    /** Messages. How many a user may have got. */
    max: number
    /** Hours. In how many hours. */
    hours: number
  } | null
  goal_event?: string | null
  message: CreatePushAutomationInputMessage
  variants?: Array<{
    /** Key. The name of the variant in statistics, such as `a`. */
    key: string
    /** Share. In percent of the users; who is beyond the sum gets nothing. */
    weight: number
    /** Message. What these users get. */
    message: CreatePushAutomationInputMessage
  }>
  inbox?: boolean
  /** Workflow id. A text of your own: only one campaign is made with it. */
  workflow_id?: string | null
  send_at?: string | null
  /** Send now. Starts as soon as it is made. Default: `false`. */
  send_now?: boolean
})
export type CreatePushTemplateInput = UpdatePushTemplateInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  message: CreatePushAutomationInputMessage
  name?: string | null
})
export type CreateReferralCodeInput = {
  /** Code. Letters and digits, such as `SPRING-24`. */
  code?: string
  /** Reward for who invited. What the owner of the code gets; promo codes have none. Default: `{}`. */
  reward_referrer?: Reward
  /** Reward for who claims. What the user gets who enters the code. Default: `{}`. */
  reward_referee?: Reward
  /** Most claims. How many users can claim it. */
  max_uses?: number | null
}
export type CreateRoleAssignmentInput = {
  /** User. The id of the user. */
  app_user_id: string
  /** Group. Where the role counts. */
  group_id?: string | null
  /** Ends at. The moment at which the role ends. */
  expires_at?: string | null
}
export type CreateRoleAssignmentResult = {
  role_key: string
  app_user_id: string
  group_id: string | null
  granted_by: string | null
  expires_at: string | null
  created_at: string
}
export type CreateRoleInput = UpdateRoleInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  description?: string | null
  permissions?: Array<string>
  is_default?: boolean
})
export type CreateRowsInput = {
  /** Rows. Up to 500, each maps columns to values. */
  rows: Array<Record<string, unknown>>
}
export type CreateSegmentInput = UpdateSegmentInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  /** Kind. Dynamic: by rules, kept up to date. Static: users that you put in. It never changes. Default: `"dynamic"`. */
  kind?: "dynamic" | "static"
  description?: string | null
  rules?: SegmentRules | null
  is_active?: boolean
})
export type CreateServiceAccountInput = {
  /** Organization. The id of an organization. */
  organization_id: string
  /** Name. What the program is, such as `Agents`. */
  name: string
  /** Scopes. What it may do, such as `users:read`. */
  scopes: Array<string>
  /** Projects. The ids of the only projects that it reaches. Default: `null`. */
  project_ids?: Array<string> | null
}
export type CreateServiceAccountReply = {
  data: CreateServiceAccountResult
}
export type CreateServiceAccountResult = ServiceAccount & {
  key: string
}
export type CreateSqlInput = {
  /** SQL. One statement that reads: SELECT, VALUES, TABLE or WITH. */
  sql: string
  /** Explain. `plan` answers how Postgres would run the statement and runs nothing; `analyze` runs it, and answers how it ran. */
  explain?: "plan" | "analyze"
  /** Rows. At most so many rows are answered. Default: `100`. */
  limit?: number
}
export type CreateStoreDefinitionInput = UpdateStoreDefinitionInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  description?: string | null
  segment_id?: string | null
  starts_at?: string | null
  ends_at?: string | null
  is_active?: boolean
  sort_order?: number
})
export type CreateStoreOfferInput = UpdateStoreOfferInput & ({
  /** Key. The name of the offer in code; it never changes. */
  key: string
  /** Item. The id of an item of the catalog; it never changes. */
  catalog_item_id?: string
  /** Item. The key of an item of the catalog, in place of its id. */
  catalog_item_key?: string
  quantity?: number
  prices?: Array<{
    /** Currency. The code of a currency. */
    currency_code: string
    /** Price. How much of the currency a unit costs; 0 is free. */
    price: number
    /** Former price. A higher price that apps show beside it. */
    original_price?: number | null
  }>
  limit_per_user?: number | null
  limit_period?: "total" | "day" | "week" | "month"
  stock_total?: number | null
  starts_at?: string | null
  ends_at?: string | null
  segment_id?: string | null
  sort_order?: number
  is_active?: boolean
})
export type CreateStreakDefinitionInput = UpdateStreakDefinitionInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  qualifying_event: string
  description?: string | null
  event_filter?: Filter | null
  period?: "day" | "week" | "month"
  min_count?: number
  week_starts_on?: number
  timezone_mode?: "user" | "fixed"
  timezone?: string | null
  grace_hours?: number
  freezes_initial?: number
  freezes_max?: number
  freeze_earn_every?: number
  at_risk_hours?: number | null
  restore_window_hours?: number
  milestones?: Array<{
    /** Length. The number of periods in a row, such as 30. */
    count: number
    /** Reward. What the user gets at this length. */
    reward: Reward
  }>
  allow_client_qualify?: boolean
  is_active?: boolean
})
export type CreateUserInput = {
  /** External id. The id of the user in a system of yours. */
  external_id?: string | null
  /** Anonymous id. The id of a device: `anon_` and 32 to 128 characters. */
  anonymous_id?: string | null
  /** Email address. */
  email?: string | null
  /** Phone number. In international form, such as `+4915112345678`. */
  phone?: string | null
  /** Display name. The name that others see. */
  display_name?: string | null
  /** Avatar. The address of a picture. */
  avatar_url?: string | null
  /** Properties. Any JSON object, such as `{"plan": "pro"}`. */
  properties?: Record<string, unknown> | null
  /** Password. At least 8 characters. */
  password?: string
  /** Email is verified. The address is known to be theirs. Otherwise it belongs to whoever proves it. */
  verify_email?: boolean
  /** Phone is verified. The number is known to be theirs. Otherwise it belongs to whoever proves it. */
  verify_phone?: boolean
}
export type CreateWebhookInput = {
  /** Event. One of your events, or a system event such as `svc.user.created`. */
  event_name: string
  /** Address. A public https address of yours that takes a POST. */
  target_url: string
  /** Description. A note about what it is for. Default: `null`. */
  description?: string | null
  /** Only events that match. A filter on the properties of the event. */
  filter?: Filter | null
  /** Include the user. Whether the body has the user, with their properties. Default: `true`. */
  include_user?: boolean
}
export type CreateWebhookReply = {
  data: CreateWebhookResult
}
export type CreateWebhookResult = Webhook & {
  secret: string
}
export type CreateXpBoostInput = UpdateXpBoostInput & ({
  name: string
  multiplier: number
  starts_at?: string
  ends_at?: string | null
  segment_id?: string | null
  rule_keys?: Array<string> | null
  is_active?: boolean
})
export type CreateXpRuleInput = UpdateXpRuleInput & ({
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  name: string
  event_name: string
  event_filter?: Filter | null
  amount?: number | null
  amount_property?: string | null
  multiplier?: number
  max_per_event?: number | null
  max_per_day?: number | null
  cooldown_seconds?: number | null
  max_total?: number | null
  starts_at?: string | null
  ends_at?: string | null
  is_active?: boolean
})
export type CreditCurrencyInput = {
  /** Amount. How much, a whole number. */
  amount: number
  /** Reason. Why, for the records. */
  reason: string
  /** Metadata. Any JSON object of your own, kept and returned as it is. Default: `{}`. */
  metadata?: Record<string, unknown>
  /** Expires at. The moment from which it counts no more. */
  expires_at?: string
}
export type CreditCurrencyReply = {
  data: CreditCurrencyResult
}
export type CreditCurrencyResult = {
  transaction: CurrencyTransaction
  balance: number
}
export type Criteria = {
  /** Counts. What is measured: events of one name, the longest streak, the XP total, or a number among the properties of the user. */
  type?: "event_count" | "streak_length" | "xp_threshold" | "property_value"
  /** Target. The value at which it unlocks. */
  target_value?: number
  /** Event. The event that counts, such as `lesson_completed`. */
  event_name?: string
  /** Only events that match. A filter on the properties of the event. */
  event_filter?: Filter | null
  /** Since. Only events from this moment on. */
  since?: string | null
  /** Streak. The id of one streak; any streak if left out. */
  streak_definition_id?: string | null
  /** Property. The property of the user, a path such as `stats.wins`. */
  property_key?: string
} & Record<string, unknown>
export type Currency = {
  code: string
  name: string
  icon_url: string | null
  balance: number
  next_regen_at?: string
  expiring?: {
    amount: number
    at: string
  }
}
export type CurrencyDaily = {
  from: string
  to: string
  timezone: string
  series: {
    granted: Array<{
      date: string
      value: number
    }>
    spent: Array<{
      date: string
      value: number
    }>
    users: Array<{
      date: string
      value: number
    }>
  }
}
export type CurrencyDailyReply = {
  data: CurrencyDaily
}
export type CurrencyDefinition = {
  id: string
  code: string
  name: string
  icon_url: string | null
  initial_grant: number
  max_balance: number
  client_spendable: boolean
  regen: {
    amount: number
    every_seconds: number
    cap: number
  } | null
  expiry_days: number | null
  is_active: boolean
  created_at: string
  updated_at: string
}
export type CurrencyDefinitionPage = {
  data: Array<CurrencyDefinition>
  total: number
  offset: number
  limit: number
}
export type CurrencyDefinitionReply = {
  data: CurrencyDefinition
}
export type CurrencyIntegrity = {
  checked_at: string
  finished_at: string
  ok: boolean
  balances: number
  mismatched: number
  mismatches: Array<{
    app_user_id: string
    currency_code: string
    balance: number
    ledger: number
    expiring: number
  }>
}
export type CurrencyList = {
  data: Array<Currency>
}
export type CurrencyStats = {
  currency_code: string
  minted: number
  burned: number
  circulating: number
  holders: number
  is_estimate: boolean
  margin: number
  top_holders: Array<{
    app_user_id: string
    display_name: string
    balance: number
  }>
  reasons: Array<{
    reason: string
    minted: number
    burned: number
    transactions: number
  }>
}
export type CurrencyStatsReply = {
  data: CurrencyStats
}
export type CurrencyTransaction = {
  id: string
  app_user_id: string
  currency_code: string
  amount: number
  balance_after: number
  kind: "credit" | "debit" | ((string & {}))
  reason: string
  source_type: "admin" | "reward" | "store" | "purchase" | "spend" | "regen" | "expiry" | "refund" | "merge" | "transfer" | ((string & {}))
  source_id: string
  idempotency_key: string | null
  expires_at: string | null
  metadata: Record<string, unknown>
  created_at: string
}
export type CurrencyTransactionCursorPage = {
  data: Array<CurrencyTransaction>
  pagination: CurrencyTransactionPagination
}
export type CurrencyTransactionPagination = {
  next_cursor: string | null
  total: number | null
}
export type DailyEvents = {
  from: string
  to: string
  series: {
    events: Array<{
      date: string
      value: number
    }>
    active_users: Array<{
      date: string
      value: number
    }>
  }
}
export type DailyEventsReply = {
  data: DailyEvents
}
export type Data = UnseenAchievement | {
  id: string
  key: string
  is_hidden: true
  unlocked: false
}
export type DataUsage = {
  input_tokens: number
  output_tokens: number
  cost_usd: number
}
export type DecideDeviceSignInInput = {
  /** Code. The code that the tool shows. */
  user_code: string
  /** Approve. True signs the tool in as you; false refuses it. */
  approve: boolean
}
export type DecideDeviceSignInReply = {
  data: DecideDeviceSignInResult
}
export type DecideDeviceSignInResult = {
  approved: boolean
}
export type DeclineFriendRequestReply = {
  data: DeclineFriendRequestResult
}
export type DeclineFriendRequestResult = {
  declined: true
}
export type DeleteAiPromptReply = {
  data: DeleteAiPromptResult
}
export type DeleteAiPromptResult = {
  name: string
}
export type DeleteCollectionReply = {
  data: {
    name: string
    deleted: true
  } | CreateCollectionResult
}
export type DeleteDeveloperAccountInput = {
  /** Confirmation. The address of the account again. */
  confirm: string
  /** Current password. Your password as it is now. */
  current_password?: string
}
export type DeleteDeveloperAccountReply = {
  data: DeleteDeveloperAccountResult
}
export type DeleteDeveloperAccountResult = {
  /** The account is gone. */
  deleted: true
}
export type DeleteEmailSuppressionInput = {
  /** Address. */
  address?: string
}
export type DeleteMeInput = {
  /** Confirmation. The word DELETE. */
  confirm?: "DELETE"
  /** Code. Six digits from a mail. */
  code?: string
}
export type DeleteProjectReply = {
  data: DeleteProjectResult
}
export type DeleteProjectResult = {
  deleted: true
  file_purge: {
    locations: number
  }
  subscription: {
    ends_at: string
  } | null
}
export type DeletePushTokenInput = {
  /** Token. As the device got it from Apple or Google. */
  token?: string
}
export type DeletePushTokenReply = {
  data: DeletePushTokenResult
}
export type DeletePushTokenResult = {
  unregistered: true
}
export type DeleteRowReply = {
  data: DeleteRowResult
}
export type DeleteRowResult = {
  id: string
  deleted: true
}
export type DeleteSourceMapsReply = {
  data: DeleteSourceMapsResult
}
export type DeleteSourceMapsResult = {
  deleted: number
}
export type DeleteStorageObjectsInput = {
  /** Bucket. The name of a bucket: `media`. */
  bucket: string
  /** Keys. Which files are deleted. */
  keys: Array<string>
}
export type Developer = {
  id: string
  email: string
  name: string | null
  oauth_providers: Array<string>
  email_verified: boolean
  has_password: boolean
  account_state: "sandbox" | "verified_free" | "paid" | ((string & {}))
  can_provision: boolean
  created_at: string
  updated_at: string
  organizations: Array<{
    id: string
    name: string
    role: string
  }>
  token: {
    type: "session" | "pat" | ((string & {}))
    scopes: Array<string> | null
    expires_at: string | null
  }
}
export type DeveloperReply = {
  data: Developer
}
export type DeveloperSession = {
  id: string
  created_at: string
  last_used_at: string
  ip: string | null
  user_agent: string | null
  current: boolean
}
export type DeveloperSessionPage = {
  data: Array<DeveloperSession>
  total: number
  offset: number
  limit: number
}
export type Domain = {
  id: string
  domain: string
  kind: "email" | "site" | "function" | ((string & {}))
  status: "pending" | "verified" | "failed" | ((string & {}))
  dns_records: Array<{
    type: "TXT" | "MX" | "CNAME" | ((string & {}))
    name: string
    value: string
    purpose: "ownership" | "dkim" | "spf" | "return_path_mx" | "return_path_spf" | "dmarc" | "routing" | ((string & {}))
    verified: boolean
  }>
  verified_at: string | null
  last_checked_at: string | null
  error: string | null
  created_at: string
}
export type DomainPage = {
  data: Array<Domain>
  total: number
  offset: number
  limit: number
}
export type DomainReply = {
  data: Domain
}
export type DryRunAchievementDraftInput = {
  /** Criteria. A value of the user and the target that it must reach. */
  criteria: Criteria
}
export type DryRunAchievementDraftReply = {
  data: DryRunAchievementDraftResult
}
export type DryRunAchievementDraftResult = {
  users_now: number
  users_30d_ago_estimate: number | null
  is_estimate: boolean
  margin: number
  sample: Array<{
    user_id: string
    value: number
  }>
  distribution: Array<{
    bucket: string
    users: number
  }>
}
export type DryRunAchievementInput = {
  /** Criteria. A value of the user and the target that it must reach. */
  criteria?: Criteria
}
export type Effect = {
  streaks?: Array<{
    key: string
    status: string
    current_count: number
    change: string
  } & Record<string, unknown>>
  xp?: Record<string, unknown> | Array<Record<string, unknown>>
  achievements?: Array<Record<string, unknown>>
  challenges?: Array<Record<string, unknown>>
  leaderboards?: Array<Record<string, unknown>>
  league?: Record<string, unknown> | Array<Record<string, unknown>>
  currencies?: Array<Record<string, unknown>>
}
export type EmailCampaign = {
  id: string
  workflow_id: string | null
  name: string
  audience: EmailCampaignAudience
  exclude_segment_id: string | null
  schedule: EmailCampaignSchedule
  throttle_per_minute: number | null
  quiet_hours: {
    start: string
    end: string
  } | null
  frequency_cap: {
    max: number
    hours: number
  } | null
  goal_event: string | null
  status: "draft" | "scheduled" | "sending" | "paused" | "sent" | "cancelled" | "failed" | ((string & {}))
  failure: string | null
  created_at: string
  updated_at: string
  scheduled_at: string | null
  started_at: string | null
  finished_at: string | null
  template_key: string
  category: string
  variables: Record<string, unknown>
  from: string | null
  reply_to: string | null
  track: boolean
  variants: Array<{
    key: string
    weight: number
    template_key: string
  }>
  counts: {
    targeted: number
    sent: number
    failed: number
    skipped: number
    opened: number
    converted: number
    clicked: number
  }
}
export type EmailCampaignAudience = {
  all: true
} | {
  segment_id: string
} | {
  user_ids: Array<string>
} | {
  filter: Filter
}
export type EmailCampaignDaily = {
  from: string
  to: string
  timezone: string
  series: {
    sent: Array<{
      date: string
      value: number
    }>
    failed: Array<{
      date: string
      value: number
    }>
    opened: Array<{
      date: string
      value: number
    }>
    clicked: Array<{
      date: string
      value: number
    }>
    converted: Array<{
      date: string
      value: number
    }>
  }
}
export type EmailCampaignDailyReply = {
  data: EmailCampaignDaily
}
export type EmailCampaignDelivery = {
  id: string
  campaign_id: string
  app_user_id: string
  message_id: string | null
  variant: string | null
  status: "pending" | "sending" | "sent" | "opened" | "converted" | "skipped" | "failed" | ((string & {}))
  reason: "no_address" | "suppressed" | "opted_out" | "quiet_hours" | "capped" | "holdout" | "cancelled" | null | ((string & {}))
  code: string | null
  due_at: string
  sent_at: string | null
  opened_at: string | null
  clicked_at: string | null
  converted_at: string | null
  created_at: string
  user?: AiInvocationUser
}
export type EmailCampaignDeliveryCursorPage = {
  data: Array<EmailCampaignDelivery>
  pagination: CurrencyTransactionPagination
}
export type EmailCampaignPage = {
  data: Array<EmailCampaign>
  total: number
  offset: number
  limit: number
}
export type EmailCampaignReply = {
  data: EmailCampaign
}
export type EmailCampaignSchedule = {
  send_at: string | null
  mode: "absolute" | "user_local" | ((string & {}))
  local_time: string | null
  weekdays: Array<number> | null
}
export type EmailCampaignStats = {
  targeted: number
  sent: number
  failed: number
  skipped: number
  opened: number
  converted: number
  clicked: number
  open_rate: number
  conversion_rate: number
  click_rate: number
  variants: Array<{
    targeted: number
    sent: number
    failed: number
    skipped: number
    opened: number
    converted: number
    clicked: number
    key: string
    open_rate: number
    conversion_rate: number
    click_rate: number
  }>
  hours: Array<{
    sent: number
    failed: number
    skipped: number
    opened: number
    converted: number
    clicked: number
    hour: string
  }>
}
export type EmailCampaignStatsReply = {
  data: EmailCampaignStats
}
export type EmailMessage = {
  id: string
  user_id: string | null
  to: string
  from: string | null
  reply_to: string | null
  subject: string
  template_key: string | null
  template_version: number | null
  locale: string | null
  category: string
  status: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed" | "cancelled" | "suppressed" | ((string & {}))
  attempts: number
  send_at: string | null
  next_attempt_at: string | null
  last_error: string | null
  sent_at: string | null
  track: boolean
  opened_at: string | null
  clicked_at: string | null
  created_at: string
  updated_at: string
  user?: AiInvocationUser
}
export type EmailMessageCursorPage = {
  data: Array<EmailMessage>
  pagination: CurrencyTransactionPagination
}
export type EmailMessageDetail = {
  id: string
  user_id: string | null
  to: string
  from: string | null
  reply_to: string | null
  subject: string
  template_key: string | null
  template_version: number | null
  locale: string | null
  category: string
  status: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed" | "cancelled" | "suppressed" | ((string & {}))
  attempts: number
  send_at: string | null
  next_attempt_at: string | null
  last_error: string | null
  sent_at: string | null
  track: boolean
  opened_at: string | null
  clicked_at: string | null
  created_at: string
  updated_at: string
  headers: Record<string, string>
  events: Array<{
    type: string
    at: string
    detail?: string
  }>
}
export type EmailMessageDetailReply = {
  data: EmailMessageDetail
}
export type EmailPreferences = {
  categories: Record<string, boolean>
  unsubscribed_all: boolean
}
export type EmailPreferencesReply = {
  data: EmailPreferences
}
export type EmailSuppression = {
  id: string
  address: string
  reason: "bounce" | "complaint" | "unsubscribe" | "manual" | ((string & {}))
  category: string | null
  created_at: string
}
export type EmailSuppressionPage = {
  data: Array<EmailSuppression>
  total: number
  offset: number
  limit: number
}
export type EmailSuppressionReply = {
  data: EmailSuppression
}
export type EmailTemplate = {
  id: string
  key: string
  name: string
  subject: string
  html: string | null
  text: string | null
  locales: Record<string, unknown>
  category: string
  version: number
  created_at: string
  updated_at: string
}
export type EmailTemplatePage = {
  data: Array<EmailTemplate>
  total: number
  offset: number
  limit: number
}
export type EmailTemplateReply = {
  data: EmailTemplate
}
export type EmptyMediaBucketReply = {
  data: EmptyMediaBucketResult
}
export type EmptyMediaBucketResult = {
  accepted: number
}
export type EndAppSessionInput = {
  /** Ended at. When the app was left. */
  ended_at?: string
}
export type Entitlement = {
  entitlement_id: string
  is_active: boolean
  product_id: string | null
  store: string
  purchase_date: string
  expiration_date: string | null
  period_type: string
}
export type EntitlementList = {
  data: Array<Entitlement>
}
export type EntitlementReply = {
  data: Entitlement
}
export type Error = {
  error: {
    code: string
    message: string
    details?: Record<string, unknown>
  }
}
export type EvaluateAiPromptInput = {
  /** Runs. How often each case is tried. Default: `1`. */
  runs?: number
  /** Cases. What is asked, and what is expected. */
  cases: Array<{
    /** Context. Values for the marks of the prompt, such as `{"place": "Paris"}`. Default: `{}`. */
    context?: Record<string, unknown>
    /** Messages. The conversation, oldest first. Default: `[]`. */
    messages?: Array<{
      /** From. The user, the model, or instructions of an administrator. */
      role: "user" | "assistant" | "system"
      /** Content. A text, or parts with texts and pictures. */
      content: InvokeAiPromptInputContent
    }>
    /** Expected. What the answer must be like. */
    expect: {
      /** Contains. A text that is in the answer. */
      contains?: string
      /** Pattern. A regular expression that the answer matches. */
      regex?: string
      /** Schema. A JSON Schema that the answer obeys. */
      json_schema?: Record<string, unknown>
    }
  }>
}
export type EvaluateAiPromptReply = {
  data: EvaluateAiPromptResult
}
export type EvaluateAiPromptResult = {
  prompt: string
  version: number | null
  pass_rate: number
  cost_usd: number
  cases: Array<{
    pass_rate: number
    cost_usd: number
    runs: Array<{
      passed: boolean
      output: string | null
      error: {
        code: string
        message: string
      } | null
      cost_usd: number
    }>
  }>
}
export type EvaluateFlagsInput = {
  /** Attributes. What the app knows of the user, such as `app_version`; filters read them. */
  attributes?: Record<string, unknown>
  /** Flags. The keys of the flags that are asked for. */
  keys?: Array<string>
}
export type Event = {
  id: string
  app_user_id: string
  event_name: string
  properties: Record<string, unknown>
  occurred_at: string
  source: "client" | "server" | "webhook" | "system" | ((string & {}))
  session_id: string | null
  received_at: string
  is_historical: boolean
  clock_adjusted: boolean
  schema_violation: boolean
  user?: AiInvocationUser
}
export type EventCursorPage = {
  data: Array<Event>
  pagination: CurrencyTransactionPagination
}
export type EventDefinition = {
  event_name: string
  description: string | null
  status: "active" | "blocked" | "deprecated" | ((string & {}))
  schema: (Record<string, unknown> | boolean) | null
  sample_rate: number
  created_at: string
  updated_at: string
}
export type EventDefinitionPage = {
  data: Array<EventDefinition>
  total: number
  offset: number
  limit: number
}
export type EventDefinitionReply = {
  data: EventDefinition
}
export type EventDetail = {
  id: string
  app_user_id: string
  event_name: string
  properties: Record<string, unknown>
  occurred_at: string
  source: "client" | "server" | "webhook" | "system" | ((string & {}))
  session_id: string | null
  received_at: string
  is_historical: boolean
  clock_adjusted: boolean
  schema_violation: boolean
  effects: Record<string, Array<Record<string, unknown>>>
}
export type EventDetailReply = {
  data: EventDetail
}
export type EventName = {
  event_name: string
  count_24h: number
  count_30d: number
  users_30d: number
  is_estimated: boolean
  first_seen: string
  last_seen: string
  status: "active" | "blocked" | "deprecated" | ((string & {}))
  properties: Array<{
    path: string
    types: Array<string>
    sample: unknown
  }>
}
export type EventNamePage = {
  data: Array<EventName>
  total: number
  offset: number
  limit: number
}
export type ExplainRowsInput = {
  /** Filter. Which rows: a condition `{column, op, value}`, or `and`, `or`, `not` of them. */
  filter?: Filter | null
  /** Search. Rows that contain words. */
  search?: FindRowsInputSearch
  /** Order. By which columns, the first one first. */
  order?: Array<AggregateRowsInputOrder> | null
  /** Limit. How many rows at most; more than 1000 counts as 1000. Default: `50`. */
  limit?: number
  /** Offset. How many rows to skip. */
  offset?: number | null
  /** Cursor. The `next_cursor` of the page before. */
  cursor?: string | null
  /** Columns. Which are answered. */
  select?: Array<string> | null
  /** Deleted rows too. Also rows that were deleted and can be restored. Default: `false`. */
  include_deleted?: boolean
  /** With. Columns that refer to other rows: those rows are answered too. */
  include?: Array<string> | null
  /** As user. As this user of an app would find them. */
  user_id?: string | null
}
export type ExplainRowsReply = {
  data: ExplainRowsResult
}
export type ExplainRowsResult = {
  plan: Array<string>
  cost: number
  scans: Array<{
    node: string
    table: string | null
    index: string | null
    rows: number
  }>
}
export type ExplainSegmentMemberReply = {
  data: ExplainSegmentMemberResult
}
export type ExplainSegmentMemberResult = {
  member: boolean
  leaves: Array<{
    path: string
    matched: boolean
    actual: unknown
  }>
}
export type ExportPromotionReply = {
  data: ExportPromotionResult
}
export type ExportPromotionResult = {
  version: 1
  definitions: Record<string, Record<string, Record<string, unknown>>>
  left_out: Array<{
    kind: string
    key: string
    code: string
    reason: string
  }>
}
export type FeedEntry = {
  id: string
  actor_id: string | null
  action: string
  target_id: string | null
  group_id: string | null
  metadata: Record<string, unknown>
  created_at: string
  actor: FeedEntryActor
}
export type FeedEntryActor = FriendUser | null
export type FeedEntryPage = {
  data: Array<FeedEntry>
  total: number
  offset: number
  limit: number
}
export type FeedEntryReply = {
  data: FeedEntry
}
export type FeedSettings = {
  events: Array<string>
}
export type FeedSettingsReply = {
  data: FeedSettings
}
export type Filter = {
  /** All of. Every one of these holds. */
  and?: Array<Filter>
  /** Any of. At least one of these holds. */
  or?: Array<Filter>
  /** Not. This does not hold. */
  not?: Filter
  /** Property. A property or a column; dots lead into it: `cart.total`. */
  column?: string
  /** Comparison. How the two are compared: `gte` is greater or equal, `like` a pattern with %. */
  op?: "eq" | "ne" | "gt" | "gte" | "lt" | "lte" | "in" | "not_in" | "like" | "ilike" | "is_null" | "is_not_null" | "contains" | "contained_by" | "containedBy" | "overlaps"
  /** Value. What it is compared with; none for `is_null` and `is_not_null`. */
  value?: unknown
} & Record<string, unknown>
export type FindDeviceSignInInput = {
  /** Code. The code that the tool shows. */
  user_code: string
}
export type FindDeviceSignInReply = {
  data: FindDeviceSignInResult
}
export type FindDeviceSignInResult = {
  client_name: string
  ip: string | null
  created_at: string
  expires_at: string
}
export type FindNearestRowsInput = {
  /** Column. A column of vectors. */
  column: string
  /** Vector. A list of numbers, as many as the column has. */
  vector?: Array<unknown>
  /** Text. In place of a vector, which is made of it. */
  text?: string
  /** Measure. How near two vectors are. Default: `"cosine"`. */
  metric?: "cosine" | "l2" | "inner_product"
  /** Limit. How many rows at most; more than 100 counts as 100. Default: `10`. */
  limit?: number
  /** Filter. Which rows: a condition `{column, op, value}`, or `and`, `or`, `not` of them. */
  filter?: Filter | null
  /** Greatest distance. Only rows that are nearer. */
  max_distance?: number | null
  /** Columns. Which are answered. */
  select?: Array<string> | null
}
export type FindNearestRowsList = {
  data: Array<FindNearestRowsResult>
}
export type FindNearestRowsResult = {
  _distance: number
} & Record<string, unknown>
export type FindRowsInput = {
  /** Filter. Which rows: a condition `{column, op, value}`, or `and`, `or`, `not` of them. */
  filter?: Filter | null
  /** Search. Rows that contain words. */
  search?: FindRowsInputSearch
  /** Order. By which columns, the first one first. */
  order?: Array<AggregateRowsInputOrder> | null
  /** Limit. How many rows at most; more than 1000 counts as 1000. Default: `50`. */
  limit?: number
  /** Offset. How many rows to skip. */
  offset?: number | null
  /** Cursor. The `next_cursor` of the page before. */
  cursor?: string | null
  /** Columns. Which are answered. */
  select?: Array<string> | null
  /** Deleted rows too. Also rows that were deleted and can be restored. Default: `false`. */
  include_deleted?: boolean
  /** With. Columns that refer to other rows: those rows are answered too. */
  include?: Array<string> | null
}
export type FindRowsInputSearch = {
  /** Words. What is looked for. */
  q: string
  /** Columns. Where it is looked for. */
  columns: Array<string>
  /** With typos. Also finds words that are nearly the same. Default: `false`. */
  fuzzy?: boolean
  /** How near. Of words with typos, 0 to 1: higher finds less. Default: `0.3`. */
  threshold?: number
} | null
export type FindUserCohortInput = {
  /** Users. How many are made. */
  count: number
  /** Properties. Any JSON object, such as `{"plan": "pro"}`. */
  properties?: Record<string, unknown>
  /** Segments. The ids of static segments that they join. */
  segment_ids?: Array<string>
  /** Label. By which you find them again. */
  label?: string
}
export type FindUserCohortReply = {
  data: FindUserCohortResult
}
export type FindUserCohortResult = {
  count: number
  user_ids: Array<string>
  users: Array<{
    id: string
    anonymous_id: string
    display_name: string
  }>
}
export type FinishGithubSignInInput = {
  /** Code. As GitHub gave it. */
  code: string
  /** State. As the start of the sign-in gave it. */
  state: string
  /** Invite code. Where sign-up is by invitation. */
  invite_code?: string
}
export type FinishRedirectSignInInput = {
  /** Code. As the app got it when the sign-in returned. */
  code: string
  /** Code verifier. The text whose challenge began the sign-in. */
  code_verifier: string
}
export type Flag = {
  id: string
  key: string
  name: string
  description: string | null
  value_type: "boolean" | "string" | "number" | "json" | ((string & {}))
  is_enabled: boolean
  off_value: unknown
  default_value: unknown
  rules: Array<Record<string, unknown>>
  schedule: Array<{
    at: string
    patch: Record<string, unknown>
  }>
  ramp: ({
    status: "running" | "done" | "stopped" | ((string & {}))
  } & Record<string, unknown>) | null
  tags: Array<string>
  owner: string | null
  last_evaluated_at: string | null
  created_at: string
  updated_at: string
  version: number
}
export type FlagDetail = {
  value: unknown
  variant: string | null
  reason: "off" | "override" | "rule" | "rollout" | "default" | ((string & {}))
  rule_index: number | null
  version: number
}
export type FlagDetailReply = {
  data: FlagDetail
}
export type FlagHistory = {
  version: number
  changed_at: string
  actor: {
    type: string
    id: string | null
    label: string | null
  }
  changes: Record<string, Array<unknown>>
}
export type FlagHistoryPage = {
  data: Array<FlagHistory>
  total: number
  offset: number
  limit: number
}
export type FlagPage = {
  data: Array<Flag>
  total: number
  offset: number
  limit: number
}
export type FlagReply = {
  data: Flag
}
export type FlagRule = {
  /** Value. What these users get, of the type of the flag. */
  value?: unknown
  /** Segment. Users who are in this segment at the moment. */
  segment_id?: string | null
  /** Users that match. A filter on users: `email`, `platform`, `app_version` and the like, or a property. */
  filter?: Filter | null
  /** Share of users. In percent, 0 to 100; raising it only adds users. */
  percentage?: number | null
  /** From. Before this moment the rule does not apply. */
  starts_at?: string | null
  /** Until. From this moment on the rule does not apply. */
  ends_at?: string | null
  /** App version from. This version of the app and later ones, such as `1.10`. */
  min_app_version?: string | null
  /** Platforms. Any of these, such as `ios` and `android`. */
  platforms?: Array<string> | null
} & Record<string, unknown>
export type FlagStats = {
  days: number
  evaluations: number
  users: number
  is_sampled: boolean
  values: Array<{
    value: unknown
    evaluations: number
    users: number
  }>
  by_day: Array<{
    day: string
    value: unknown
    evaluations: number
    users: number
  }>
}
export type FlagStatsReply = {
  data: FlagStats
}
export type FlagStep = {
  /** At. The moment, such as `2026-12-01T08:00:00Z`. */
  at?: string
  /** Change. What is different from then on. */
  patch?: {
    /** On. Switches the flag on or off. */
    is_enabled?: boolean
    /** Value when off. Replaces it. */
    off_value?: unknown
    /** Value for everybody else. Replaces it. */
    default_value?: unknown
    /** Rules. Replaces all rules. */
    rules?: Array<FlagRule>
    /** Rule. Which rule, counted from 0, gets the percentage. */
    rule_index?: number
    /** Share of users. In percent, for the rule. */
    percentage?: number
  } & Record<string, unknown>
} & Record<string, unknown>
export type Friend = {
  user: FriendUser
  status: "accepted" | "pending_incoming" | "pending_outgoing" | ((string & {}))
  since: string
  metadata: Record<string, unknown>
  online?: boolean
}
export type FriendCode = {
  code: string
}
export type FriendCodeReply = {
  data: FriendCode
}
export type FriendPage = {
  data: Array<Friend>
  total: number
  offset: number
  limit: number
}
export type FriendRequest = {
  user: FriendUser
  status: "accepted" | "pending_incoming" | "pending_outgoing" | ((string & {}))
  since: string
  metadata: Record<string, unknown>
}
export type FriendRequestPage = {
  data: Array<FriendRequest>
  total: number
  offset: number
  limit: number
}
export type FriendRequestReply = {
  data: FriendRequest
}
export type FriendSuggestion = {
  user: FriendUser
  common_count: number
}
export type FriendSuggestionList = {
  data: Array<FriendSuggestion>
}
export type FriendUser = {
  id: string
  display_name: string
  avatar_url: string | null
}
export type Friendship = {
  user_id: string
  friend_id: string
  friend: FriendUser
  status: "accepted" | "pending_incoming" | "pending_outgoing" | ((string & {}))
  since: string
}
export type FriendshipPage = {
  data: Array<Friendship>
  total: number
  offset: number
  limit: number
}
export type FriendshipReply = {
  data: Friendship
}
export type GetAchievementReply = {
  data: Data
}
export type GetConfigReply = {
  data: Record<string, unknown>
}
export type GetCurrencyIntegrityReply = {
  data: CurrencyIntegrity | null
}
export type GetFlagsReply = {
  data: Record<string, FlagDetail>
}
export type GetLeaderboardReply = {
  data: Array<LeaderboardEntry>
  total: number
  offset: number
  limit: number
  run: CloseLeaderboardRunResult
  me: LeaderboardEntry | null
}
export type GetOnboardingReply = {
  data: Onboarding | null
}
export type GetUnversionedOpenApiReply = {
  openapi: string
} & Record<string, unknown>
export type GetUserBalancesReply = {
  data: Record<string, number>
}
export type GrantAchievementInput = {
  /** User. The id of the user. */
  app_user_id: string
}
export type GrantAchievementReply = {
  data: GrantAchievementResult
}
export type GrantAchievementResult = {
  app_user_id: string
  achievement_id: string
  unlocked_at: string
  source: "criteria" | "grant" | "backfill" | "reward" | ((string & {}))
}
export type GrantInventoryInput = {
  /** Item. The key of an item of the catalog. */
  catalog_item_key: string
  /** Quantity. How many. Default: `1`. */
  quantity?: number
  /** Expires at. The end of what is given. */
  expires_at?: string
  /** Reason. Why, for the records. */
  reason?: string
}
export type GrantUserEntitlementInput = {
  /** Entitlement. A right to a feature, such as `premium`. */
  entitlement_id: string
  /** Ends at. The moment at which the access ends. */
  expiration_date?: string | null
  /** Days. For how many days from now, in place of an end. */
  duration_days?: number
  /** Product. What was bought, for the records. */
  product_id?: string | null
  /** Reason. Why, for the records. */
  reason?: string | null
}
export type GrantUserStreakFreezesInput = {
  /** Freezes. How many freezes to give. */
  amount: number
}
export type GrantXpInput = {
  /** User. The id of the user. */
  app_user_id: string
  /** XP. How many points; a negative number deducts. */
  amount: number
  /** Reason. Why, for the records. */
  reason?: string | null
}
export type Group = {
  id: string
  name: string
  description: string | null
  avatar_url: string | null
  is_public: boolean
  max_members: number
  metadata: Record<string, unknown>
  member_count: number
  created_at: string
  updated_at: string
}
export type GroupDetail = Group & ({
  my_role: "owner" | "admin" | "member" | "viewer" | null | ((string & {}))
})
export type GroupDetailReply = {
  data: GroupDetail
}
export type GroupInvite = {
  id: string
  group_id: string
  code: string
  url: string | null
  role: "owner" | "admin" | "member" | "viewer" | ((string & {}))
  max_uses: number
  uses: number
  created_by: string
  expires_at: string
  created_at: string
}
export type GroupInvitePage = {
  data: Array<GroupInvite>
  total: number
  offset: number
  limit: number
}
export type GroupInviteReply = {
  data: GroupInvite
}
export type GroupMember = {
  group_id: string
  app_user_id: string
  role: "owner" | "admin" | "member" | "viewer" | ((string & {}))
  metadata: Record<string, unknown>
  joined_at: string
  app_users: FriendUser
}
export type GroupMemberPage = {
  data: Array<GroupMember>
  total: number
  offset: number
  limit: number
}
export type GroupMemberReply = {
  data: GroupMember
}
export type GroupPage = {
  data: Array<Group>
  total: number
  offset: number
  limit: number
}
export type GroupReply = {
  data: Group
}
export type Health = {
  status: "ok" | "degraded" | "failing" | ((string & {}))
  version: "1.0.0"
  parts: {
    database: "ok" | "failing" | ((string & {}))
    template: "ok" | "failing" | ((string & {}))
    tenants: "ok" | "failing" | ((string & {}))
  }
  gone?: {
    count: number
    projects: Array<string>
  }
}
export type HealthReply = {
  data: Health
}
export type ImportCatalogInput = Array<{
  /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
  key: string
  /** Name. What people read, in lists and in messages. */
  name: string
  /** Kind. Consumable: used up. Durable: owned once. Bundle: other items. Currency pack: credits at once. It never changes. */
  item_type: "consumable" | "durable" | "bundle" | "currency_pack"
  /** Description. A note about what it is for. */
  description?: string | null
  /** Icon. The address of a picture. */
  icon_url?: string | null
  /** Category. A word by which apps list items. */
  category?: string | null
  /** Tags. Words to find it by. */
  tags?: Array<string>
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
  /** Most owned. How many a user can have. */
  max_owned?: number | null
  /** Lasts. Seconds after which it expires. */
  duration_seconds?: number | null
  /** Effect. What a user gets by using it, or at once from a currency pack. */
  use_effect?: Reward | null
  /** Active. Users see active items only. */
  is_active?: boolean
  /** Prices. One for each currency that buys it. */
  prices?: Array<{
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
    /** Price. How much of the currency it costs. */
    price: number
  }>
  /** Contents. What a bundle consists of. */
  bundle_contents?: Array<{
    /** Item. The key of another item. */
    content_item_key: string
    /** Quantity. How many of it. */
    quantity: number
  }>
}>
export type ImportCatalogReply = {
  data: ImportCatalogResult
}
export type ImportCatalogResult = {
  created: number
  updated: number
  unchanged: number
  errors: Array<{
    index: number
    key: string | null
    message: string
  }>
}
export type ImportLeaderboardEntriesInput = {
  /** Entries. One for each user; former scores of these users are replaced. */
  entries: Array<{
    /** User. The id of the user. */
    app_user_id: string
    /** Score. A number of -10^18 to 10^18; a string where it has 16 digits or more. */
    score: number | string
    /** Metadata. Any JSON object of your own, kept and returned as it is. */
    metadata?: Record<string, unknown>
  }>
}
export type ImportLeaderboardEntriesReply = {
  data: ImportLeaderboardEntriesResult
}
export type ImportLeaderboardEntriesResult = {
  imported: number
  failed: number
  errors: Array<{
    index: number
    code: string
    message: string
  }>
}
export type ImportPromotionInput = {
  /** Document. An export of definitions. */
  document: {
    /** Version. Of the form of the document. */
    version: 1
    /** Definitions. By kind and key. */
    definitions: Record<string, Record<string, Record<string, unknown>>>
    /** Left out. What the export could not contain. */
    left_out?: Array<{
      /** Kind. Such as `flags`. */
      kind: string
      /** Key. Of the definition. */
      key: string
      /** Code. Why, for programs. */
      code: string
      /** Reason. Why, for the records. */
      reason: string
    }>
  }
  /** Plan. The `plan_hash` of the plan that is applied. */
  plan_hash?: string
  /** Confirmation. The same again, where the plan deletes something. */
  confirm?: string
  /** Kinds. Such as `streaks` and `flags`. */
  kinds?: Array<string>
  /** Keys. Of these kinds only these keys, such as `{"flags": ["new_checkout"]}`. Default: `{}`. */
  keys?: Record<string, Array<string>>
  /** Delete the rest. Deletes what the source does not have. Default: `false`. */
  prune?: boolean
}
export type ImportPromotionReply = {
  data: ImportPromotionResult
}
export type ImportPromotionResult = {
  plan_hash: string
  clean: boolean
  ops: Array<{
    op: "create" | "update" | "delete" | ((string & {}))
    kind: string
    key: string
    diff: Record<string, [unknown, unknown, ...Array<unknown>]>
  }>
  blocked: Array<{
    kind: string
    key: string
    code: string
    reason: string
  }>
}
export type Integration = {
  id: string
  provider: string
  is_active: boolean
  has_credentials: boolean
  webhook_url: string | null
  created_at: string
  updated_at: string
}
export type IntegrationEvent = {
  id: string
  provider: string
  event_key: string
  outcome: string | null
  /** As it was received */
  body: string
  received_at: string
  processed_at: string | null
}
export type IntegrationEventCursorPage = {
  data: Array<IntegrationEvent>
  pagination: CurrencyTransactionPagination
}
export type IntegrationEventReply = {
  data: IntegrationEvent
}
export type IntegrationList = {
  data: Array<Integration>
}
export type IntegrationReply = {
  data: Integration
}
export type IntrospectOperatorTokenInput = {
  /** Token. The token that is asked about. */
  token: string
}
export type IntrospectOperatorTokenReply = {
  data: IntrospectOperatorTokenResult
}
export type IntrospectOperatorTokenResult = {
  active: boolean
  scopes: Array<string>
  project_id: string | null
  organization_id: string | null
  expires_at: string | null
}
export type Inventory = {
  id: string
  app_user_id: string
  catalog_item_id: string
  item: {
    key: string
    name: string
    item_type: "consumable" | "durable" | "bundle" | "currency_pack" | ((string & {}))
    icon_url: string | null
  }
  quantity: number
  expires_at: string | null
  metadata: Record<string, unknown>
  source_type: string
  source_id: string
  created_at: string
  updated_at: string
}
export type InventoryLedger = {
  id: string
  app_user_id: string
  stack_id: string
  catalog_item_id: string
  catalog_item_key: string
  change: number
  quantity_after: number
  kind: "granted" | "consumed" | "revoked" | "merged" | ((string & {}))
  reason: string
  source_type: string
  source_id: string
  created_at: string
  user?: AiInvocationUser
}
export type InventoryLedgerCursorPage = {
  data: Array<InventoryLedger>
  pagination: CurrencyTransactionPagination
}
export type InventoryList = {
  data: Array<Inventory>
}
export type InventoryPage = {
  data: Array<Inventory>
  total: number
  offset: number
  limit: number
}
export type InventoryReply = {
  data: Inventory
}
export type InvokeAiPromptInput = {
  /** Context. Values for the marks of the prompt, such as `{"place": "Paris"}`. Default: `{}`. */
  context?: Record<string, unknown>
  /** Longest answer. In tokens, about four characters each. */
  max_tokens?: number
  /** Stream. The answer comes piece by piece. Default: `false`. */
  stream?: boolean
  /** Form of the answer. Text, JSON, or JSON by a schema. */
  response_format?: InvokeAiPromptInputResponseFormat
  /** Messages. The conversation, oldest first. Default: `[]`. */
  messages?: Array<{
    /** From. The user, the model, or instructions of an administrator. */
    role: "user" | "assistant"
    /** Content. A text, or parts with texts and pictures. */
    content: InvokeAiPromptInputContent
  }>
}
export type InvokeAiPromptInputContent = string | (Array<{
  /** Kind. A text or a picture. */
  type: "text"
  /** Text. What is said. */
  text: string
} | ({
  /** Kind. A text or a picture. */
  type: "image_url"
  /** Picture. Where it is. */
  image_url: {
    /** Address. An https address or a data URL. */
    url: string
    /** Detail. How closely it is looked at. */
    detail?: "auto" | "low" | "high"
  }
})>)
export type InvokeAiPromptInputResponseFormat = ("text" | "json") | ({
  /** Form. Text, JSON, or JSON by a schema. */
  type: "text" | "json" | "json_object"
}) | {
  /** Form. Text, JSON, or JSON by a schema. */
  type: "json_schema"
  /** Schema. A JSON Schema with a name. */
  json_schema: {
    /** Name. What the schema is called, such as `answer`. */
    name: string
    /** Schema. A JSON Schema of the answer. */
    schema: Record<string, unknown>
    /** Strict. The provider enforces the schema. */
    strict?: boolean
  }
}
export type InvokeAiPromptReply = {
  data: ({
    id: string
    prompt: string
    version: number
    usage: DataUsage
    finish_reason: string | null
    output: string
  }) | ({
    id: string
    prompt: string
    version: number
    usage: DataUsage
    finish_reason: string | null
    object: unknown
  })
}
export type Issue = {
  id: string
  fingerprint: string
  title: string
  level: "debug" | "info" | "warn" | "error" | "fatal" | ((string & {}))
  first_seen: string
  last_seen: string
  count: number
  users: number
  status: "open" | "resolved" | "ignored" | ((string & {}))
  app_versions: Array<string>
  version_counts: Record<string, number>
  day_counts: Record<string, number>
}
export type IssuePage = {
  data: Array<Issue>
  total: number
  offset: number
  limit: number
}
export type IssueReply = {
  data: Issue
}
export type JoinChallengeInput = {
  /** Team. The group for which the user counts. */
  group_id?: string
}
export type JoinChallengeReply = {
  data: JoinChallengeResult
}
export type JoinChallengeResult = {
  challenge_id: string
  app_user_id: string
  joined_at: string
  progress: number
  goal_value: number
  status: "in_progress" | "completed" | "expired" | "left" | ((string & {}))
  completed_at: string | null
  rank: number | null
  group_id?: string | null
}
export type JoinGroupByCodeInput = {
  /** Code. Of an invitation. */
  code: string
}
export type JoinWaitlistInput = {
  /** Email address. */
  email: string
  /** Note. What you plan to make. */
  note?: string
}
export type Jwks = {
  keys: Array<Record<string, string>>
}
export type JwksReply = {
  data: Jwks
}
export type Leaderboard = {
  id: string
  key: string
  name: string
  description: string | null
  scoring: "best" | "sum" | "last" | "count" | ((string & {}))
  sort: "desc" | "asc" | ((string & {}))
  period: "all_time" | "daily" | "weekly" | "monthly" | ((string & {}))
  timezone: string
  starts_at: string | null
  ends_at: string | null
  client_writable: boolean
  rewards: Array<Record<string, unknown>>
  run: CloseLeaderboardRunResult
}
export type LeaderboardAnomaly = {
  entry: LeaderboardEntry
  reasons: Array<"score" | "jump" | ((string & {}))>
  score_sigmas: number | null
  jump_sigmas: number | null
}
export type LeaderboardAnomalyPage = {
  data: Array<LeaderboardAnomaly>
  total: number
  offset: number
  limit: number
}
export type LeaderboardDaily = {
  from: string
  to: string
  timezone: string
  series: {
    entries: Array<{
      date: string
      value: number
    }>
    users: Array<{
      date: string
      value: number
    }>
  }
}
export type LeaderboardDailyReply = {
  data: LeaderboardDaily
}
export type LeaderboardDefinition = {
  id: string
  key: string
  name: string
  description: string | null
  source: Record<string, unknown>
  scoring: "best" | "sum" | "last" | "count" | ((string & {}))
  sort: "desc" | "asc" | ((string & {}))
  period: "all_time" | "daily" | "weekly" | "monthly" | ((string & {}))
  timezone: string
  starts_at: string | null
  ends_at: string | null
  segment_id: string | null
  client_writable: boolean
  min_score: (number | string) | null
  max_score: (number | string) | null
  max_per_minute: number
  rewards: Array<{
    from_rank: number
    to_rank: number
    reward: Reward
  }>
  keep_runs: number
  is_active: boolean
  created_at: string
  updated_at: string
}
export type LeaderboardDefinitionPage = {
  data: Array<LeaderboardDefinition>
  total: number
  offset: number
  limit: number
}
export type LeaderboardDefinitionReply = {
  data: LeaderboardDefinition
}
export type LeaderboardEntry = {
  app_user_id: string
  score: number | string
  rank: number | null
  submissions: number
  reached_at: string
  metadata: Record<string, unknown>
  user: ChallengeLeaderboardUser
}
export type LeaderboardEntryReply = {
  data: LeaderboardEntry
}
export type LeaderboardPage = {
  data: Array<Leaderboard>
  total: number
  offset: number
  limit: number
}
export type LeaderboardRun = {
  key: string
  status: "open" | "closed" | ((string & {}))
  starts_at: string | null
  ends_at: string | null
  id: string
  entries: number
  closed_at: string | null
  is_frozen: boolean
}
export type LeaderboardRunPage = {
  data: Array<LeaderboardRun>
  total: number
  offset: number
  limit: number
}
export type League = {
  league: LeagueLeague
  current: LeagueCurrent
  last_result: LeagueLastResult
}
export type LeagueCurrent = ({
  run_key: string
  tier: string
  points: number | string
  rank: number | null
  members: number
  zone: "promotion" | "safe" | "relegation" | null | ((string & {}))
  starts_at: string
  ends_at: string
}) | null
export type LeagueDefinition = {
  id: string
  key: string
  name: string
  tiers: Array<{
    key: string
    name: string
    icon_url: string | null
    promote_count: number
    relegate_count: number
  }>
  cohort_size: number
  period: "daily" | "weekly" | "monthly" | ((string & {}))
  timezone: string
  points: Record<string, unknown>
  min_points_to_join: number
  inactive_relegates: boolean
  rewards: Array<{
    tier_key: string
    from_rank: number
    to_rank: number
    reward: Reward
  }>
  is_active: boolean
  created_at: string
  updated_at: string
}
export type LeagueDefinitionPage = {
  data: Array<LeagueDefinition>
  total: number
  offset: number
  limit: number
}
export type LeagueDefinitionReply = {
  data: LeagueDefinition
}
export type LeagueDetail = League & ({
  cohort: Array<{
    app_user_id: string
    points: number | string
    rank: number
    zone: "promotion" | "safe" | "relegation" | ((string & {}))
    reached_at: string
    user: ChallengeLeaderboardUser
  }>
})
export type LeagueDetailReply = {
  data: LeagueDetail
}
export type LeagueHistory = {
  run_key: string
  tier_from: string
  tier_to: string
  points: number | string
  rank: number | null
  members: number
  result: "promoted" | "stayed" | "relegated" | ((string & {}))
  closed_at: string
  seen: boolean
}
export type LeagueHistoryPage = {
  data: Array<LeagueHistory>
  total: number
  offset: number
  limit: number
}
export type LeagueLastResult = LeagueHistory | null
export type LeagueLeague = {
  id: string
  key: string
  name: string
  tiers: Array<{
    key: string
    name: string
    icon_url: string | null
    promote_count: number
    relegate_count: number
  }>
  period: "daily" | "weekly" | "monthly" | ((string & {}))
  timezone: string
  cohort_size: number
}
export type LeagueList = {
  data: Array<League>
}
export type LeagueRun = {
  key: string
  status: "open" | "closed" | ((string & {}))
  starts_at: string
  ends_at: string
  closed_at: string | null
  members: number
  cohorts: number
  is_settled: boolean
}
export type LeagueRunCohort = {
  id: string
  tier_key: string
  members: number
  is_filling: boolean
  created_at: string
  entries: Array<{
    app_user_id: string
    points: number | string
    rank: number | null
    result: "pending" | "promoted" | "stayed" | "relegated" | ((string & {}))
  }>
}
export type LeagueRunCohortPage = {
  data: Array<LeagueRunCohort>
  total: number
  offset: number
  limit: number
}
export type LeagueRunPage = {
  data: Array<LeagueRun>
  total: number
  offset: number
  limit: number
}
export type LeagueRunReply = {
  data: LeagueRun
}
export type LeagueStats = {
  run_key: string
  tiers: Array<{
    tier_key: string
    users: number
    median_points: (number | string) | null
    promotion_cutoff: (number | string) | null
  }>
}
export type LeagueStatsReply = {
  data: LeagueStats
}
export type LeagueUser = {
  app_user_id: string
  tier_key: string
}
export type LeagueUserReply = {
  data: LeagueUser
}
export type LeaveGroupReply = {
  data: LeaveGroupResult
}
export type LeaveGroupResult = {
  left: true
}
export type LinkIdentityInput = {
  /** Way. A way to sign in. */
  provider: "email"
  /** Email address. */
  email: string
  /** Code. Six digits. */
  code: string
  /** Password. At least 8 characters. */
  password?: string
  /** Current password. Where the user has one. */
  current_password?: string
} | {
  /** Way. A way to sign in. */
  provider: "phone"
  /** Phone number. In international form, such as `+4915112345678`. */
  phone: string
  /** Code. Six digits. */
  code: string
} | {
  /** Way. A way to sign in. */
  provider: "password"
  /** Password. At least 8 characters. */
  password: string
  /** Current password. Where the user has one. */
  current_password?: string
} | ({
  /** Way. A way to sign in. */
  provider: "apple" | "google"
  /** ID token. As Apple or Google gave it to the app. */
  id_token: string
  /** Nonce. The text that the app asked for the token with. */
  nonce?: string
})
export type ListAchievementsReply = {
  data: Array<Data>
  total: number
  offset: number
  limit: number
}
export type ListLeaderboardEntriesReply = {
  data: Array<LeaderboardEntry>
  total: number
  offset: number
  limit: number
  run: CloseLeaderboardRunResult
}
export type ListReviewsReply = {
  data: Array<Review>
  total: number
  offset: number
  limit: number
  summary: {
    average: number | null
    count: number
    histogram: ReviewHistogram
  }
}
export type ListRowsReply = {
  data: Array<Record<string, unknown>>
  next_cursor?: string | null
  offset?: number
  limit?: number
}
export type MarkAchievementsSeenInput = {
  /** Achievements. The ids of the unlocked achievements that the user has seen. */
  ids: Array<string>
}
export type MarkAchievementsSeenReply = {
  data: MarkAchievementsSeenResult
}
export type MarkAchievementsSeenResult = {
  seen: number
}
export type MarkConversationReadReply = {
  data: MarkConversationReadResult
}
export type MarkConversationReadResult = {
  user_id: string
  display_name: string
  avatar_url: string | null
  last_read_at: string | null
  joined_at: string
}
export type MarkLeagueResultSeenReply = {
  data: LeagueLastResult
}
export type MarkPushInboxReadReply = {
  data: MarkPushInboxReadResult
}
export type MarkPushInboxReadResult = {
  read: number
}
export type Me = {
  id: string
  email: string | null
  phone: string | null
  display_name: string
  avatar_url: string | null
  external_id: string | null
  anonymous_id: string | null
  auth_providers: Array<{
    provider: string
    provider_id: string
  }>
  properties: Record<string, unknown>
  timezone: string | null
  email_verified: boolean
  phone_verified: boolean
  first_seen_at: string
  last_seen_at: string
}
export type MeReply = {
  data: Me
}
export type Media = {
  id: string
  key: string
  filename: string
  mime_type: string
  status: "pending" | "committed" | ((string & {}))
  storage_url: string
  thumbnail_url: string | null
  is_public: boolean
  /** The lasting address of a public file, for anybody; of an image with `w`, `h`, `fit` and `format`. */
  public_url: string | null
  alt_text: string | null
  metadata: Record<string, unknown>
  size_bytes: number | null
  folder_id: string | null
  uploaded_by: string | null
  created_at: string
  updated_at: string
}
export type MediaBucket = {
  name: string
  is_public: boolean
  file_size_limit: number | null
  allowed_mime_types: Array<string> | null
  created_at: string
  updated_at: string
}
export type MediaBucketPage = {
  data: Array<MediaBucket>
  total: number
  offset: number
  limit: number
}
export type MediaBucketReply = {
  data: MediaBucket
}
export type MediaCatalog = {
  slug: string
  name: string
  updated_at: string
  assets: Array<{
    id: string
    filename: string
    mime_type: string
    url: string
    thumbnail_url: string | null
    alt_text: string | null
    metadata: Record<string, unknown>
    position: number
  }>
}
export type MediaCatalogDefinition = {
  id: string
  slug: string
  name: string
  is_public: boolean
  asset_ids: Array<string>
  created_at: string
  updated_at: string
}
export type MediaCatalogDefinitionPage = {
  data: Array<MediaCatalogDefinition>
  total: number
  offset: number
  limit: number
}
export type MediaCatalogDefinitionReply = {
  data: MediaCatalogDefinition
}
export type MediaCatalogReply = {
  data: MediaCatalog
}
export type MediaFolder = {
  id: string
  name: string
  created_at: string
  updated_at: string
}
export type MediaFolderPage = {
  data: Array<MediaFolder>
  total: number
  offset: number
  limit: number
}
export type MediaFolderReply = {
  data: MediaFolder
}
export type MediaJob = {
  id: string
  asset_id: string
  status: "queued" | "running" | "succeeded" | "failed" | ((string & {}))
  operations: Array<Record<string, unknown>>
  attempts: number
  error: {
    code: string
    message: string
  } | null
  result_asset_id: string | null
  created_at: string
  started_at: string | null
  finished_at: string | null
}
export type MediaJobPage = {
  data: Array<MediaJob>
  total: number
  offset: number
  limit: number
}
export type MediaJobReply = {
  data: MediaJob
}
export type MediaPage = {
  data: Array<Media>
  total: number
  offset: number
  limit: number
}
export type MediaReply = {
  data: Media
}
export type MergeAccountsInput = {
  /** Anonymous session. The session token of the anonymous user. */
  from_session_token: string
}
export type MergeAccountsReply = {
  data: MergeAccountsResult
}
export type MergeAccountsResult = {
  user: Me
  merged: Record<string, number>
}
export type Message = {
  id: string
  conversation_id: string
  sender_id: string | null
  sender: FeedEntryActor
  body: string
  message_type: string
  metadata: Record<string, unknown>
  parent_message_id: string | null
  attachments: Array<{
    url: string
    content_type?: string
    size_bytes?: number
    metadata?: Record<string, unknown>
  }>
  reactions: Array<Reaction>
  reply_count: number
  created_at: string
  edited_at: string | null
}
export type MessagePage = {
  data: Array<Message>
  total: number
  offset: number
  limit: number
}
export type MessageReceipts = {
  read_by: Array<{
    user_id: string
    display_name: string
    read_at: string
  }>
  read_count: number
  total_recipients: number
}
export type MessageReceiptsReply = {
  data: MessageReceipts
}
export type MessageReply = {
  data: Message
}
export type MessagingStats = {
  conversations: {
    total: number
    direct: number
    group: number
  }
  messages: {
    total: number
    last_24h: number
    last_7d: number
  }
  active_senders: {
    last_24h: number
    last_7d: number
  }
}
export type MessagingStatsReply = {
  data: MessagingStats
}
export type ModerationQueue = {
  id: string
  subject_type: ModerationQueueSubjectType
  subject_id: string
  subject_user_id: string | null
  snapshot: Record<string, unknown>
  source: "report" | "rule" | ((string & {}))
  rule_id: string | null
  reasons: Record<string, unknown>
  report_count: number
  priority: number
  status: "pending" | "approved" | "rejected" | "escalated" | ((string & {}))
  is_hidden: boolean
  moderator_id: string | null
  resolved_at: string | null
  note: string | null
  created_at: string
  user?: AiInvocationUser
}
export type ModerationQueuePage = {
  data: Array<ModerationQueue>
  total: number
  offset: number
  limit: number
}
export type ModerationQueueReply = {
  data: ApproveModerationItemResult
}
export type ModerationQueueSubjectType = "user" | "message" | "review" | "media" | "feed_entry" | "group" | "collection_row" | "content" | "ai_invocation" | ((string & {}))
export type ModerationReport = {
  id: string
  subject_type: "user" | "message" | "review" | "media" | "feed_entry" | "group" | "collection_row" | "content" | ((string & {}))
  subject_id: string
  reason: "spam" | "abuse" | "sexual" | "violence" | "self_harm" | "copyright" | "other" | ((string & {}))
  details: string | null
  status: "received" | "action_taken" | "no_action" | ((string & {}))
  created_at: string
}
export type ModerationReportPage = {
  data: Array<ModerationReport>
  total: number
  offset: number
  limit: number
}
export type ModerationRule = {
  id: string
  name: string
  rule_type: "keyword" | "regex" | "report_threshold" | "rate" | "link" | "new_account" | ((string & {}))
  config: Record<string, unknown>
  is_active: boolean
  created_at: string
  updated_at: string
}
export type ModerationRulePage = {
  data: Array<ModerationRule>
  total: number
  offset: number
  limit: number
}
export type ModerationRuleReply = {
  data: ModerationRule
}
export type ModerationTrust = {
  app_user_id: string
  trust_level: "new" | "trusted" | "moderator" | ((string & {}))
  auto_approve: boolean
  created_at: string
  updated_at: string
  user?: AiInvocationUser
}
export type ModerationTrustPage = {
  data: Array<ModerationTrust>
  total: number
  offset: number
  limit: number
}
export type MonetizationDefinitions = {
  monetization: {
    entitlements: Array<{
      key: string
      display_name: string | null
      description: string | null
      product_keys: Array<string>
    }>
    products: Array<{
      key: string
      store: string
      store_identifier: string
      type: string | null
      display_name: string | null
      store_metadata: Record<string, unknown>
    }>
    offerings: Array<{
      key: string
      display_name: string | null
      is_current: boolean
      packages: Array<{
        offering_key: string
        key: string
        product_key: string | null
        position: number | null
      }>
    }>
    paywalls: Array<{
      key: string
      offering_key: string
      template: string | null
      display: Record<string, unknown>
    }>
  }
}
export type MonetizationDefinitionsReply = {
  data: MonetizationDefinitions
}
export type MonetizationDrift = {
  has_drift: boolean
  drift: Array<{
    object_type: "entitlement" | "product" | "offering" | "paywall" | ((string & {}))
    identifier: string
    last_applied_hash: string | null
    live_hash: string | null
  }>
}
export type MonetizationDriftReply = {
  data: MonetizationDrift
}
export type MonetizationPlan = {
  provider: "revenuecat"
  rc_project_id: string
  plan_hash: string
  clean: boolean
  ops: Array<{
    op: "create" | "update" | "archive" | "attach" | "detach" | "set-current" | ((string & {}))
    object_type: "entitlement" | "product" | "offering" | "paywall" | "package" | "store_product" | ((string & {}))
    identifier: string
    status: "pending" | "drift" | ((string & {}))
    reason: string
  }>
  store_floor: Array<{
    code: string
    product_key: string | null
    store: string
    title: string
    detail: string
    location: string | null
  }>
  human_floor: Array<{
    code: string
    product_key: string | null
    store: string
    title: string
    detail: string
    location: string | null
  }>
  drift: Array<{
    object_type: "entitlement" | "product" | "offering" | "paywall" | ((string & {}))
    identifier: string
    last_applied_hash: string | null
    live_hash: string | null
  }>
  validation: Array<{
    code: "MULTIPLE_CURRENT_OFFERINGS" | "PRODUCT_TYPE_REQUIRED" | "PRODUCT_PUSH_INPUT_MISSING" | ((string & {}))
    object_type: "entitlement" | "product" | "offering" | "paywall" | ((string & {}))
    identifier: string
    detail: string
  }>
}
export type MonetizationPlanReply = {
  data: MonetizationPlan
}
export type MyGroup = {
  role: "owner" | "admin" | "member" | "viewer" | ((string & {}))
  groups: Group
}
export type MyGroupList = {
  data: Array<MyGroup>
}
export type MyLeaderboardEntry = LeaderboardEntry & {
  percentile: number
}
export type MyLeaderboardEntryReply = {
  data: MyLeaderboardEntry
}
export type MyReferral = {
  code: string
  url: string | null
  claims: number
  max_uses: number | null
  rewards_granted: number
  claimed: {
    code: string
    claimed_at: string
  } | null
}
export type MyReferralClaim = {
  id: string
  code: string
  state: "pending" | "rewarded" | "expired" | ((string & {}))
  claimed_at: string
  qualify_by: string | null
  rewarded_at: string | null
  claimer: MyReferralClaimClaimer
}
export type MyReferralClaimClaimer = {
  display_name: string
  avatar_url: string | null
}
export type MyReferralClaimPage = {
  data: Array<MyReferralClaim>
  total: number
  offset: number
  limit: number
}
export type MyReferralReply = {
  data: MyReferral
}
export type MyRoles = {
  roles: Array<{
    key: string
    name: string
    group_id: string | null
    expires_at: string | null
  }>
  permissions: Array<string>
}
export type MyRolesReply = {
  data: MyRoles
}
export type NoteReviewPromptReply = {
  data: NoteReviewPromptResult
}
export type NoteReviewPromptResult = {
  shown_at: string
}
export type OauthProvider = {
  name: string
  issuer: string | null
  client_id: string
  has_secret: boolean
  team_id: string | null
  signing_key_id: string | null
  scopes: Array<string>
  is_active: boolean
  callback_url: string
  created_at: string
  updated_at: string
}
export type OauthProviderList = {
  data: Array<OauthProvider>
}
export type OauthProviderReply = {
  data: OauthProvider
}
export type OauthRedirects = {
  addresses: Array<string>
  callback_url: string
}
export type OauthRedirectsReply = {
  data: OauthRedirects
}
export type Onboarding = {
  flow: CreateOnboardingFlowResult
  progress: AdvanceOnboardingResult | null
}
export type OnboardingFlow = {
  id: string
  name: string
  is_active: boolean
}
export type OnboardingFlowList = {
  data: Array<OnboardingFlow>
}
export type OnboardingStats = {
  flow_id: string
  flow_name: string
  total_started: number
  total_completed: number
  total_skipped: number
  completion_rate: number | null
}
export type OnboardingStatsList = {
  data: Array<OnboardingStats>
}
export type Operation = {
  operation_id: string
  type: string
  status: "queued" | "running" | "waiting" | "succeeded" | "failed" | "cancelled" | ((string & {}))
  progress: {
    done: number
    total: number
  } | null
  confirm_required: boolean
  plan_hash?: string
  result: unknown
  failed_reason: string | null
  created_at: string
  updated_at: string
}
export type OperationPage = {
  data: Array<Operation>
  total: number
  offset: number
  limit: number
}
export type OperationReply = {
  data: Operation
}
export type OperatorToken = {
  id: string
  scopes: Array<string>
  project_id: string | null
  organization_id: string | null
  label: string | null
  actor: string | null
  status: "active" | "expired" | "revoked" | ((string & {}))
  expires_at: string
  last_used_at: string | null
  created_at: string
}
export type OperatorTokenPage = {
  data: Array<OperatorToken>
  total: number
  offset: number
  limit: number
}
export type Organization = {
  id: string
  name: string
  slug: string
  is_personal: boolean
  role: "viewer" | "developer" | "admin" | "owner" | ((string & {}))
  created_at: string
}
export type OrganizationAuditEvent = {
  id: string
  occurred_at: string
  actor: {
    type: "developer" | "pat" | "service_account" | "operator_token" | "server_key" | "system" | ((string & {}))
    id: string | null
    label: string | null
  }
  action: string
  target: OrganizationAuditEventTarget
  changes: Record<string, [unknown, unknown, ...Array<unknown>]>
  ip: string | null
  user_agent: string | null
  request_id: string | null
  status: number
}
export type OrganizationAuditEventCursorPage = {
  data: Array<OrganizationAuditEvent>
  pagination: CurrencyTransactionPagination
}
export type OrganizationAuditEventReply = {
  data: OrganizationAuditEvent
}
export type OrganizationAuditEventTarget = {
  type: string
  id: string | null
}
export type OrganizationInvite = {
  id: string
  email: string
  role: "viewer" | "developer" | "admin" | "owner" | ((string & {}))
  status: "pending" | "accepted" | "revoked" | "expired" | ((string & {}))
  expires_at: string
  created_at: string
}
export type OrganizationInvitePage = {
  data: Array<OrganizationInvite>
  total: number
  offset: number
  limit: number
}
export type OrganizationInviteReply = {
  data: OrganizationInvite
}
export type OrganizationMember = {
  developer_id: string
  email: string
  name: string | null
  role: "viewer" | "developer" | "admin" | "owner" | ((string & {}))
  joined_at: string
}
export type OrganizationMemberPage = {
  data: Array<OrganizationMember>
  total: number
  offset: number
  limit: number
}
export type OrganizationMemberReply = {
  data: OrganizationMember
}
export type OrganizationPage = {
  data: Array<Organization>
  total: number
  offset: number
  limit: number
}
export type OrganizationReply = {
  data: Organization
}
export type Password = {
  success: true
}
export type PasswordReply = {
  data: Password
}
export type PauseStreakInput = {
  /** First day. The first day of the pause, such as `2026-12-24`. */
  start: string
  /** Last day. The last day of the pause, included. */
  end: string
}
export type PingReply = {
  data: PingResult
}
export type PingResult = {
  server_time: string
  api_version: "1.0.0"
  project_id: string
  key_type: "client" | "server" | ((string & {}))
  environment: "development" | "production" | ((string & {}))
  user_id: string | null
  session_expires_at: string | null
  request_id: string
  min_app_version: string | null
}
export type PlanPromotionInput = {
  /** Into. The id of the project that is changed. */
  target_project_id: string
  /** Kinds. Such as `streaks` and `flags`. */
  kinds?: Array<string>
  /** Keys. Of these kinds only these keys, such as `{"flags": ["new_checkout"]}`. Default: `{}`. */
  keys?: Record<string, Array<string>>
  /** Delete the rest. Deletes what the source does not have. Default: `false`. */
  prune?: boolean
}
export type PollDeviceSignInInput = {
  /** Device code. The secret code that the tool got. */
  device_code: string
}
export type PresignMediaUploadInput = {
  /** Bucket. The name of a bucket: `media`. */
  bucket: string
  /** Key. The place of the file, such as `user/<user id>/a.png`. */
  key: string
  /** Method. `GET` reads, `PUT` writes. */
  method: string
  /** Type. Of a file that is written, such as `image/png`. */
  content_type?: string
  /** Valid for. Seconds; at most an hour for writing, a day for reading. */
  expires_in_seconds?: number
  /** Width. In pixels. */
  w?: number
  /** Height. In pixels. */
  h?: number
  /** Fit. Cover fills the size and cuts off, contain shows all. Default: `"cover"`. */
  fit?: "cover" | "contain"
  /** Format. Of the picture that is answered. */
  format?: "webp" | "jpeg" | "png" | "avif"
}
export type PresignMediaUploadReply = {
  data: PresignMediaUploadResult
}
export type PresignMediaUploadResult = {
  url: string
  expires_at: string
  asset_id?: string
}
export type PreviewContentTokenReply = {
  data: PreviewContentTokenResult
}
export type PreviewContentTokenResult = {
  token: string
  expires_in: 3600
}
export type PreviewEmailCampaignInput = {
  /** User. For whom the message is shown. */
  user_id?: string | null
}
export type PreviewEmailCampaignReply = {
  data: PreviewEmailCampaignResult
}
export type PreviewEmailCampaignResult = {
  audience_count: number
  addresses: number
  by_locale: Record<string, number>
  skipped: {
    no_address: number
    suppressed: number
    opted_out: number
    quiet: number
    capped: number
  }
  rendered: {
    subject: string | null
    html: string | null
    text: string | null
    locale: string | null
    missing: Array<string>
  }
}
export type PreviewEmailTemplateInput = {
  /** Variables. What fills the marks of the template, such as `{"amount": 12}`. Default: `{}`. */
  variables?: Record<string, unknown>
  /** Language. Such as `de`. */
  locale?: string
}
export type PreviewEmailTemplateReply = {
  data: PreviewEmailTemplateResult
}
export type PreviewEmailTemplateResult = {
  subject: string
  html: string | null
  text: string | null
  locale: string | null
  version: number
}
export type PreviewPushCampaignReply = {
  data: PreviewPushCampaignResult
}
export type PreviewPushCampaignResult = {
  audience_count: number
  is_estimate: boolean
  margin: number
  provider_connected: boolean
  devices: number
  by_platform: {
    ios: number
    android: number
  }
  by_locale: Record<string, number>
  skipped: {
    no_token: number
    opted_out: number
    quiet: number
    capped: number
  }
  rendered: Record<string, unknown>
}
export type PreviewSegmentInput = {
  /** Rules. Who belongs to a dynamic segment. */
  rules: SegmentRules
}
export type PreviewSegmentReply = {
  data: PreviewSegmentResult
}
export type PreviewSegmentResult = {
  count: number
  is_estimate: boolean
  margin: number
  sample: Array<PreviewSegmentResultSample>
  sql: string
  explain: {
    cost: number
    rows: number
  }
}
export type PreviewSegmentResultSample = {
  id: string
  email: string | null
  external_id: string | null
  display_name: string
  avatar_url: string | null
}
export type PreviewStoreReply = {
  data: PreviewStoreResult
}
export type PreviewStoreResult = {
  visible: boolean
  reason: "inactive" | "not_started" | "ended" | "segment" | null | ((string & {}))
  offers: Array<{
    id: string
    key: string
    item: StoreDetailOffer
    quantity: number
    prices: Array<{
      currency_code: string
      price: number
      original_price: number | null
    }>
    badge: string | null
    available: boolean
    reason: "inactive" | "item_inactive" | "ended" | "segment" | "not_started" | "no_price" | "limit_reached" | "out_of_stock" | "max_owned" | null | ((string & {}))
    remaining_for_user: number | null
    remaining_stock: number | null
    can_afford: boolean
    starts_at: string | null
    ends_at: string | null
    visible: boolean
  }>
}
export type Project = {
  id: string
  name: string
  tier: "free" | "pro" | "enterprise" | ((string & {}))
  effective_tier: "free" | "pro" | "enterprise" | ((string & {}))
  comped: boolean
  created_at: string
}
export type ProjectDetail = Project & ({
  developer_id: string
  organization_id: string
  bundle_id: string | null
  google_oauth_client_id: string | null
  platform: "ios" | "android" | "all" | ((string & {}))
  environment: string
  default_from_email: string | null
  default_from_name: string | null
  default_reply_to: string | null
  magic_link_redirect_url: string | null
  auth_email_brand_name: string | null
  user_search_enabled: boolean
  graphql_enabled: boolean
  rest_enabled: boolean
  anonymous_reads: boolean
  updated_at: string
  api_keys: Array<RevokeApiKeyResult>
  integrations: Array<Integration>
})
export type ProjectDetailReply = {
  data: ProjectDetail
}
export type ProjectHealth = {
  database: {
    ok: boolean
    latency_ms: number
    schema_version: string
  }
  queue_lag_seconds: number
  outbox_pending: number
  webhook_dlq: number
  realtime_connections: number
  storage_ok: boolean
}
export type ProjectHealthReply = {
  data: ProjectHealth
}
export type ProjectList = {
  data: Array<Project>
}
export type ProvisioningStatus = {
  status: "provisioning" | "ready" | "failed" | ((string & {}))
  workflow_id: string | null
  current_step: string | null
  steps: Array<{
    name: "create_database" | "run_migrations" | "create_roles" | "seed_defaults" | "verify" | ((string & {}))
    status: "pending" | "running" | "succeeded" | "failed" | ((string & {}))
    started_at: string | null
    finished_at: string | null
  }>
  attempt: number
  is_stalled: boolean
  started_at: string | null
  completed_at: string | null
  error: {
    code: string
    message: string
  } | null
  data_lost_at?: string
}
export type ProvisioningStatusReply = {
  data: ProvisioningStatus
}
export type PublishContentInput = {
  /** Version. The number of a version of this language. */
  version?: number | null
  /** Publish at. When it is published. */
  publish_at?: string | null
}
export type PullInput = {
  /** Client. The installation of the app. */
  client_id: string
  /** Checkpoint. What the last pull answered; null pulls everything. */
  checkpoint?: unknown
  /** Collections. The names of synced collections. */
  collections?: Array<string>
  /** Limit. How many rows and ids of all collections together; more than 5000 are 5000. Default: `1000`. */
  limit?: number
}
export type PullReply = {
  data: PullResult
}
export type PullResult = {
  changes: Record<string, {
    created: Array<Record<string, unknown>>
    updated: Array<Record<string, unknown>>
    deleted: Array<string>
  }>
  checkpoint: string
  has_more: boolean
  server_time: string
  schema: Record<string, number>
}
export type Purchase = {
  id: string
  app_user_id: string
  store_id: string
  offer_id: string
  quantity: number
  currency_code: string
  total_price: number
  status: "completed" | "refunded" | ((string & {}))
  granted: Array<{
    catalog_item_id: string
    key: string
    quantity: number
  }>
  created_at: string
  refunded_at: string | null
}
export type PurchaseOfferInput = {
  /** Offer. The id of the offer; it or its key is required. */
  offer_id?: string
  /** Offer. The key of the offer. */
  offer_key?: string
  /** Quantity. How many units. Default: `1`. */
  quantity?: number
  /** Currency. The currency that is paid. */
  currency_code: string
  /** Expected price. What the user was told that all units cost together. */
  expected_price: number
}
export type PurchaseOfferReply = {
  data: PurchaseOfferResult
}
export type PurchaseOfferResult = {
  purchase: Purchase
  granted: Array<Inventory>
  balances: Record<string, number>
}
export type PurchasePage = {
  data: Array<Purchase>
  total: number
  offset: number
  limit: number
}
export type PurchaseRefund = {
  purchase: Purchase
  balances: Record<string, number>
}
export type PurchaseRefundReply = {
  data: PurchaseRefund
}
export type PurchaseReply = {
  data: Purchase
}
export type PushAutomation = {
  id: string
  key: string
  trigger: ({
    event_name: string
    filter?: Filter | null
  }) | ({
    segment_id: string
    on: "entered" | "exited" | ((string & {}))
  })
  delay_seconds: number
  cancel_if_event: string | null
  message: PushAutomationMessage | null
  template_key: string | null
  frequency_cap: {
    max: number
    hours: number
  } | null
  quiet_hours: {
    start: string
    end: string
  } | null
  inbox: boolean
  is_active: boolean
  created_at: string
  updated_at: string
}
export type PushAutomationMessage = {
  title: string
  body: string
  data?: Record<string, unknown>
  image_url?: string
  deep_link?: string
  sound?: string
  badge?: number | "increment"
  category?: string
  collapse_key?: string
  ttl_seconds: number
  priority: "high" | "normal" | ((string & {}))
  localized?: Record<string, {
    title?: string
    body?: string
  }>
}
export type PushAutomationPage = {
  data: Array<PushAutomation>
  total: number
  offset: number
  limit: number
}
export type PushAutomationReply = {
  data: PushAutomation
}
export type PushAutomationStats = {
  targeted: number
  sent: number
  failed: number
  skipped: number
  opened: number
  converted: number
  open_rate: number
  conversion_rate: number
  variants: Array<{
    targeted: number
    sent: number
    failed: number
    skipped: number
    opened: number
    converted: number
    key: string
    open_rate: number
    conversion_rate: number
  }>
  hours: Array<{
    sent: number
    failed: number
    skipped: number
    opened: number
    converted: number
    hour: string
  }>
}
export type PushAutomationStatsReply = {
  data: PushAutomationStats
}
export type PushCampaign = {
  id: string
  workflow_id: string | null
  name: string
  audience: EmailCampaignAudience
  exclude_segment_id: string | null
  schedule: EmailCampaignSchedule
  throttle_per_minute: number | null
  quiet_hours: {
    start: string
    end: string
  } | null
  frequency_cap: {
    max: number
    hours: number
  } | null
  goal_event: string | null
  status: "draft" | "scheduled" | "sending" | "paused" | "sent" | "cancelled" | "failed" | ((string & {}))
  failure: string | null
  created_at: string
  updated_at: string
  scheduled_at: string | null
  started_at: string | null
  finished_at: string | null
  message: PushAutomationMessage
  variants: Array<{
    key: string
    weight: number
    message: PushAutomationMessage
  }>
  inbox: boolean
  counts: {
    targeted: number
    sent: number
    failed: number
    skipped: number
    opened: number
    converted: number
  }
}
export type PushCampaignDelivery = {
  id: string
  campaign_id: string | null
  automation_id: string | null
  app_user_id: string
  variant: string | null
  is_test: boolean
  status: "pending" | "sending" | "sent" | "opened" | "converted" | "skipped" | "failed" | ((string & {}))
  reason: "no_token" | "opted_out" | "quiet_hours" | "capped" | "holdout" | "cancelled" | null | ((string & {}))
  code: string | null
  due_at: string
  attempts: Array<{
    push_token_id: string
    provider: "apns" | "fcm" | "log" | ((string & {}))
    outcome: "sent" | "failed" | "retry" | "refused" | ((string & {}))
    n?: number
    at: string
    status?: number | null
    code?: string | null
    payload?: Record<string, unknown>
  }>
  sent_at: string | null
  received_at: string | null
  opened_at: string | null
  converted_at: string | null
  created_at: string
  user?: AiInvocationUser
}
export type PushCampaignDeliveryCursorPage = {
  data: Array<PushCampaignDelivery>
  pagination: CurrencyTransactionPagination
}
export type PushCampaignPage = {
  data: Array<PushCampaign>
  total: number
  offset: number
  limit: number
}
export type PushCampaignReply = {
  data: PushCampaign
}
export type PushDelivery = {
  id: string
  campaign_id: string | null
  automation_id: string | null
  app_user_id: string
  variant: string | null
  is_test: boolean
  status: "pending" | "sending" | "sent" | "opened" | "converted" | "skipped" | "failed" | ((string & {}))
  reason: "no_token" | "opted_out" | "quiet_hours" | "capped" | "holdout" | "cancelled" | null | ((string & {}))
  code: string | null
  due_at: string
  attempts: Array<{
    push_token_id: string
    provider: "apns" | "fcm" | "log" | ((string & {}))
    outcome: "sent" | "failed" | "retry" | "refused" | ((string & {}))
    n?: number
    at: string
    status?: number | null
    code?: string | null
    payload?: Record<string, unknown>
  }>
  sent_at: string | null
  received_at: string | null
  opened_at: string | null
  converted_at: string | null
  created_at: string
}
export type PushDeliveryCursorPage = {
  data: Array<PushDelivery>
  pagination: CurrencyTransactionPagination
}
export type PushInbox = {
  id: string
  title: string
  body: string
  image_url: string | null
  deep_link: string | null
  data: Record<string, unknown>
  created_at: string
  read_at: string | null
  expires_at: string
}
export type PushInboxCursorPage = {
  data: Array<PushInbox>
  pagination: CurrencyTransactionPagination
}
export type PushInboxReply = {
  data: PushInbox
}
export type PushInboxUnreadCount = {
  count: number
}
export type PushInboxUnreadCountReply = {
  data: PushInboxUnreadCount
}
export type PushInput = {
  /** Client. The installation of the app. */
  client_id: string
  /** Mutations. What the client has written, 1 to 500, in its order. */
  mutations: Array<{
    /** Mutation. By which it is known again. */
    id: string
    /** Operation. put sets all columns of a row, new or not, patch those of data, delete deletes it. */
    op: "put" | "patch" | "delete"
    /** Collection. Its name. */
    collection: string
    /** Row. The id of the row. */
    row_id: string
    /** Base. updated_at of the row that was changed: another one is a conflict. */
    base_updated_at?: string | null
    /** Transaction. Mutations of one text are applied together, or none is. */
    tx?: string | null
    /** Data. Columns and their values, of put and patch. */
    data?: Record<string, unknown>
  }>
}
export type PushPreferences = {
  enabled: boolean
  categories: Record<string, boolean>
  quiet_hours: {
    start: string
    end: string
  } | null
  timezone: string | null
}
export type PushPreferencesReply = {
  data: PushPreferences
}
export type PushReply = {
  data: PushResult
}
export type PushResult = {
  results: Array<{
    id: unknown
    status: "applied" | "conflict" | "rejected" | "duplicate" | ((string & {}))
    row: Record<string, unknown> | null
    code?: string
    message?: string
    first_status?: "applied" | "conflict" | "rejected" | ((string & {}))
  }>
  checkpoint_hint: string
}
export type PushTemplate = {
  id: string
  key: string
  name: string | null
  message: PushAutomationMessage
  created_at: string
  updated_at: string
}
export type PushTemplatePage = {
  data: Array<PushTemplate>
  total: number
  offset: number
  limit: number
}
export type PushTemplateReply = {
  data: PushTemplate
}
export type PutOauthProviderInput = {
  /** Issuer. The address of the provider, such as `https://login.example.com`. */
  issuer?: string
  /** Client id. As the provider gave it; of Apple the Services ID. */
  client_id: string
  /** Client secret. As the provider gave it, of Apple the text of the .p8 file; it is stored encrypted and not shown again. Null removes the stored one. */
  client_secret?: string | null
  /** Team id. Of the developer account at Apple. */
  team_id?: string
  /** Key id. Of the .p8 file of Apple. */
  signing_key_id?: string
  /** Scopes. What is asked of the provider beside the usual. Default: `[]`. */
  scopes?: Array<string>
  /** Active. Switched off, it stays defined and has no effect. Default: `true`. */
  is_active?: boolean
}
export type PutOauthRedirectsInput = {
  /** Redirect addresses. Where a sign-in may return to, the default first. */
  addresses: Array<string>
}
export type QualifyUserStreakInput = {
  /** Period. The day, week or month, such as `2026-10-03`. */
  period_key?: string
}
export type RampFlagInput = {
  /** From. The share of users now, in percent. */
  from: number
  /** To. The share of users at the end, in percent. */
  to: number
  /** Step. By how much it rises each time, in percent. */
  step: number
  /** Every. Hours from one step to the next. */
  every_hours: number
  /** Guardrail. `{event_name, max_rate, min_users?}`: stops when more than this rate, 0 to 1, of the users had the event. */
  guardrail?: Record<string, unknown> | null
  /** Rule. Which rule, counted from 0. */
  rule_index?: number
  /** Value. What these users get, where a new rule is made. */
  value?: unknown
}
export type Reaction = {
  emoji: string
  count: number
  reacted: boolean
}
export type ReactionList = {
  data: Array<Reaction>
}
export type RealtimeRooms = {
  rules: Array<{
    pattern: string
    publish: string
    presence: boolean
    listen?: string
  }>
}
export type RealtimeRoomsReply = {
  data: RealtimeRooms
}
export type RealtimeStats = {
  connections: number
  users: number
  channels: number
  messages_per_second: number
}
export type RealtimeStatsReply = {
  data: RealtimeStats
}
export type RealtimeTicket = {
  ticket: string
  expires_in: 60
}
export type RealtimeTicketReply = {
  data: RealtimeTicket
}
export type ReceiveBillingEventsReply = {
  data: ReceiveBillingEventsResult
}
export type ReceiveBillingEventsResult = {
  received: true
  applied: boolean
}
export type ReceiveEmailEventsInput = {
  /** Id. Of this event at the provider: it counts once. */
  id: string
  /** What happened. The mail was delivered, came back, or was reported as spam. */
  type: "delivered" | "bounce" | "complaint"
  /** Kind of bounce. `hard` ends mail to the address; a soft one does not. */
  bounce_type?: string | null
  /** Address. */
  address?: string | null
  /** Message id. The `Message-ID` of the mail. */
  message_id?: string | null
}
export type ReceiveEmailEventsReply = {
  data: ReceiveEmailEventsResult
}
export type ReceiveEmailEventsResult = {
  received: true
  is_new: boolean
}
export type ReceiveRevenuecatEventsInput = {
  /** Event. As the provider sends it. */
  event: {
    /** Id. Of the event at the provider: it counts once. */
    id: string
    /** Kind. What happened. */
    type: string
  } & Record<string, unknown>
}
export type ReceiveSuperwallEventsInput = {
  /** Id. Of the event at the provider: it counts once. */
  id?: string
  /** Event. As the provider sends it. */
  event: string
  /** User. The id of the user. */
  user_id: string
} & Record<string, unknown>
export type RedeemInviteInput = {
  /** Invite code. Such as `SVC-7K2M-...`. */
  invite_code: string
}
export type RedeemInviteReply = {
  data: RedeemInviteResult
}
export type RedeemInviteResult = {
  can_provision: true
  redeemed: boolean
}
export type RedirectSignInBegun = {
  url: string
}
export type RedirectSignInBegunReply = {
  data: RedirectSignInBegun
}
export type Referral = {
  valid: boolean
  referrer: MyReferralClaimClaimer | null
  reward_referee: Record<string, unknown>
}
export type ReferralCode = {
  id: string
  code: string
  reward_referrer: Record<string, unknown>
  reward_referee: Record<string, unknown>
  max_uses: number | null
  uses: number
  is_active: boolean
  app_user_id: string | null
  created_at: string
  updated_at: string
}
export type ReferralCodePage = {
  data: Array<ReferralCode>
  total: number
  offset: number
  limit: number
}
export type ReferralCodeReply = {
  data: ReferralCode
}
export type ReferralDefaults = {
  reward_referrer: Record<string, unknown>
  reward_referee: Record<string, unknown>
  max_uses: number | null
  qualify_event: string | null
  qualify_within_days: number | null
  share_url: string | null
  updated_at: string
}
export type ReferralDefaultsReply = {
  data: ReferralDefaults
}
export type ReferralReply = {
  data: Referral
}
export type ReferralStats = {
  referral_code: ReferralCode
  total_claims: number
  claims: Array<{
    id: string
    claimer_id: string
    claimed_at: string
    state: "pending" | "rewarded" | "expired" | ((string & {}))
    qualify_event: string | null
    qualify_by: string | null
    qualified_at: string | null
    rewarded_at: string | null
    user?: AiInvocationUser
  }>
}
export type ReferralStatsReply = {
  data: ReferralStats
}
export type RefreshDeveloperSessionReply = {
  data: RefreshDeveloperSessionResult
}
export type RefreshDeveloperSessionResult = {
  access_token: string
  refresh_token: string
}
export type RefreshSegmentReply = {
  data: RefreshSegmentResult
}
export type RefreshSegmentResult = {
  segment_id: string
  status: "queued"
}
export type RefreshSessionReply = {
  data: RefreshSessionResult
}
export type RefreshSessionResult = {
  session_token: string
  refresh_token: string
}
export type RegisterPushTokenInput = {
  /** Token. As the device got it from Apple or Google. */
  token: string
  /** Platform. Of the device. */
  platform: "ios" | "android"
}
export type RegisterPushTokenReply = {
  data: RegisterPushTokenResult
}
export type RegisterPushTokenResult = {
  id: string
  app_user_id: string
  token: string
  platform: "ios" | "android" | ((string & {}))
  provider: "apns" | "fcm" | ((string & {}))
  is_active: boolean
  created_at: string
  updated_at: string
}
export type RejectModerationItemInput = {
  /** Note. For other moderators. */
  note?: string
  /** Against the author. Nothing, a warning, silence for a day, or a ban. Default: `"none"`. */
  action?: "none" | "warn" | "mute_24h" | "ban"
}
export type ReplayEventsInput = {
  /** Since. Events from this moment on. */
  since: string
  /** Until. Events before this moment. */
  until?: string | null
  /** Targets. What is recomputed, such as `streaks` or `xp`. */
  targets?: Array<string> | null
  /** Users. Only events of these. */
  user_ids?: Array<string> | null
  /** Try only. Shows what would change and writes nothing. Default: `true`. */
  dry_run?: boolean
}
export type ReplaySubscriptionReply = {
  data: ReplaySubscriptionResult
}
export type ReplaySubscriptionResult = {
  before: ReplaySubscriptionResultBefore
  after: ReplaySubscriptionResultBefore
  changed: boolean
}
export type ReplaySubscriptionResultBefore = {
  id: string
  app_user_id: string
  product_id: string | null
  store: string
  status: "trial" | "active" | "grace" | "cancelled" | "paused" | "refunded" | "expired" | ((string & {}))
  period_type: string
  purchase_date: string
  expiration_date: string | null
  auto_renew: boolean
  environment: "production" | "sandbox" | ((string & {}))
  updated_at: string
  grants: Array<{
    id: string
    source: "subscription_provider" | "promotional" | "reward" | "referral" | "purchase" | ((string & {}))
    source_ref: string
    is_active: boolean
    product_id: string | null
    store: string
    period_type: string
    purchase_date: string
    expiration_date: string | null
    grace_until: string | null
    cancelled_at: string | null
    refunded_at: string | null
    reason: string | null
    created_at: string
    updated_at: string
    entitlement_id: string
  }>
}
export type ReplayWebhookInput = {
  /** Since. Deliveries made from this moment on. */
  since?: string | null
  /** Until. Deliveries made before this moment. */
  until?: string | null
  /** Status. Which of them are sent again. */
  statuses?: Array<"dlq" | "failed">
}
export type ReplayWebhookReply = {
  data: ReplayWebhookResult
}
export type ReplayWebhookResult = {
  operation_id: string
  type: "webhooks.replay"
  status: string
  progress: {
    done: number
    total: number
  } | null
}
export type ReplyToReviewInput = {
  /** Text. What the user or the developer has to say. */
  body: string
}
export type Report = {
  id: string
  kind: "log" | "error" | "crash" | "performance" | ((string & {}))
  level: "debug" | "info" | "warn" | "error" | "fatal" | ((string & {}))
  message: string
  stack: string | null
  context: Record<string, unknown> | null
  occurred_at: string
  received_at: string
  app_version: string | null
  os_version: string | null
  device_model: string | null
  app_user_id: string | null
}
export type ReportCursorPage = {
  data: Array<Report>
  pagination: CurrencyTransactionPagination
}
export type ReportDetail = Report & ({
  frames: Array<{
    raw: string
    function: string | null
    file: string | null
    line: number | null
    column: number | null
    source: ({
      file: string
      line: number
      column: number
      function: string | null
      code: Array<{
        line: number
        text: string
      }>
    }) | null
  }>
  bundles: Array<{
    file: string
    source_map: "used" | "missing" | "failed" | ((string & {}))
  }>
})
export type ReportDetailReply = {
  data: ReportDetail
}
export type ReportPushOpenedReply = {
  data: ReportPushOpenedResult
}
export type ReportPushOpenedResult = {
  opened: true
}
export type ReportPushReceivedReply = {
  data: ReportPushReceivedResult
}
export type ReportPushReceivedResult = {
  received: true
}
export type ReportReviewInput = {
  /** Reason. What is wrong with it. */
  reason: "spam" | "abuse" | "sexual" | "violence" | "self_harm" | "copyright" | "other"
  /** Details. In own words. */
  details?: string
}
export type ReprovisionProjectInput = {
  /** Run id. An id of your own for the run. */
  workflow_id?: string
}
export type ReprovisionProjectReply = {
  data: ReprovisionProjectResult
}
export type ReprovisionProjectResult = {
  provisioning_status: "provisioning"
  workflow_id: string
  attempt: number
  data_lost?: true
}
export type RequestDeveloperCodeInput = {
  /** Email address. */
  email: string
}
export type RequestDeveloperCodeReply = {
  data: RequestDeveloperCodeResult
}
export type RequestDeveloperCodeResult = {
  ok: true
}
export type RequestEmailCodeInput = {
  /** Email address. */
  email: string
  /** For. Signing in, linking the address, or deleting the account. Default: `"sign_in"`. */
  purpose?: "sign_in" | "link" | "delete"
}
export type RequestPhoneCodeInput = {
  /** Phone number. In international form, such as `+4915112345678`. */
  phone: string
  /** For. Signing in, linking the address, or deleting the account. Default: `"sign_in"`. */
  purpose?: "sign_in" | "link" | "delete"
}
export type ResetInput = {
  /** Client. The installation of the app. */
  client_id: string
}
export type ResetReply = {
  data: ResetResult
}
export type ResetResult = {
  client_id: string
  reset: true
}
export type ResetUserReply = {
  data: ResetUserResult
}
export type ResetUserResult = {
  user_id: string
  reset: Array<string>
  rows_deleted: Record<string, number>
  user_deleted: boolean
}
export type RestoreEntitlementsReply = {
  data: RestoreEntitlementsResult
}
export type RestoreEntitlementsResult = {
  restored_count: number
  entitlements: Array<Entitlement>
}
export type RestoreUserStreakInput = {
  /** Length. The length after the restore, at least that of the whole chain. */
  count?: number
}
export type RevertFlagInput = {
  /** Version. The version to go back to, such as 3. */
  version: number
}
export type Review = UpdateReviewResult & {
  voted: boolean
}
export type ReviewHistogram = {
  "1": number
  "2": number
  "3": number
  "4": number
  "5": number
}
export type ReviewPage = {
  data: Array<Review>
  total: number
  offset: number
  limit: number
}
export type ReviewPrompt = {
  should_prompt: boolean
  reason: "ok" | "not_in_segment" | "too_few_sessions" | "shown_recently" | ((string & {}))
}
export type ReviewPromptReply = {
  data: ReviewPrompt
}
export type ReviewReply = {
  data: Review
}
export type ReviewSettings = {
  reviews_auto_publish: boolean
  reviews_require_purchase: boolean
  prompt: {
    segment_id: string | null
    min_sessions: number
    gap_days: number
  }
}
export type ReviewSettingsReply = {
  data: ReviewSettings
}
export type ReviewsSummary = {
  average: number | null
  count: number
  histogram: ReviewHistogram
  by_status: {
    pending: number
    published: number
    rejected: number
    hidden: number
  }
}
export type ReviewsSummaryReply = {
  data: ReviewsSummary
}
export type RevokeAchievementReply = {
  data: RevokeAchievementResult
}
export type RevokeAchievementResult = {
  app_user_id: string
  achievement_id: string
  revoked: true
}
export type RevokeApiKeyReply = {
  data: RevokeApiKeyResult
}
export type RevokeApiKeyResult = {
  id: string
  key_prefix: string
  key_type: "client" | "server" | ((string & {}))
  environment: "development" | "production" | ((string & {}))
  is_active: boolean
  created_at: string
  last_used_at: string | null
  expires_at: string | null
}
export type RevokeDeveloperSessionReply = {
  data: RevokeDeveloperSessionResult
}
export type RevokeDeveloperSessionResult = {
  deleted: true
}
export type RevokeInventoryInput = {
  /** User. The id of the user. */
  app_user_id: string
  /** Item. The key of an item of the catalog. */
  catalog_item_key: string
  /** Quantity. How many. Default: `1`. */
  quantity?: number
  /** Reason. Why, for the records. */
  reason: string
}
export type RevokeInventoryReply = {
  data: RevokeInventoryResult
}
export type RevokeInventoryResult = {
  catalog_item_key: string
  quantity: number
}
export type RevokeUserEntitlementReply = {
  data: RevokeUserEntitlementResult
}
export type RevokeUserEntitlementResult = {
  deleted: true
  still_active: boolean
}
export type Reward = {
  /** XP. How many points. */
  xp?: number
  /** Currencies. Amounts of currencies. */
  currencies?: Array<{
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code?: string
    /** Amount. How much of the currency is credited. */
    amount?: number
  }>
  /** Items. Items of the catalog. */
  items?: Array<{
    /** Item. The key of an item of the catalog. */
    catalog_item_key?: string
    /** Quantity. How many; 1 if left out. */
    quantity?: number
  }>
  /** Entitlements. Access that the user gets. */
  entitlements?: Array<{
    /** Entitlement. The id of an entitlement, such as `pro`. */
    entitlement_id?: string
    /** Days. For how many days; for life if left out. */
    duration_days?: number | null
  }>
  /** Freezes. Freezes of streaks. */
  freezes?: Array<{
    /** Streak. The key of a streak. */
    streak_key?: string
    /** Freezes. How many freezes. */
    amount?: number
  }>
  /** Achievement. The key of an achievement that is unlocked. */
  achievement_key?: string
} & Record<string, unknown>
export type Role = {
  id: string
  key: string
  name: string
  description: string | null
  permissions: Array<string>
  is_default: boolean
  created_at: string
  updated_at: string
}
export type RoleAssignment = CreateRoleAssignmentResult & {
  user?: AiInvocationUser
}
export type RoleAssignmentPage = {
  data: Array<RoleAssignment>
  total: number
  offset: number
  limit: number
}
export type RoleAssignmentReply = {
  data: CreateRoleAssignmentResult
}
export type RolePage = {
  data: Array<Role>
  total: number
  offset: number
  limit: number
}
export type RoleReply = {
  data: Role
}
export type RollbackAiPromptInput = {
  /** Version. The version to go back to. */
  version: number
}
export type RollbackContentInput = {
  /** Language. A tag such as `en` or `pt-BR`. */
  locale: string
  /** Version. The number of the version to go back to. */
  version: number
}
export type RotateApiKeyInput = {
  /** Grace period. Seconds for which the former key is still accepted; 0 ends it at once. Default: `86400`. */
  grace_seconds?: number
}
export type RotateWebhookSecretReply = {
  data: RotateWebhookSecretResult
}
export type RotateWebhookSecretResult = {
  secret: string
}
export type Row = {
  id: string
} & Record<string, unknown>
export type RowList = {
  data: Array<Row>
}
export type RowReply = {
  data: Row
}
export type RunTransactionInput = {
  /** Writes. 1 to 100, all or none. */
  operations: Array<{
    /** Write. Insert, change, insert or change, or delete. */
    op: "insert" | "update" | "upsert" | "delete"
    /** Collection. The name of a collection. */
    collection: string
    /** Row. The id of the row. */
    id?: unknown
    /** Values. Columns and their values. */
    data?: Record<string, unknown>
    /** Only if. Columns and the values that the row must have. */
    $if?: Record<string, unknown>
    /** Unique columns. By which the row is found that is there already. */
    conflict_target?: Array<string>
    /** Name. By which later writes refer to the row. */
    as?: string
  }>
}
export type RunTransactionReply = {
  data: Array<Record<string, unknown>>
}
export type ScheduleEmailCampaignInput = {
  /** Send at. The moment at which it starts. */
  send_at?: string | null
}
export type Segment = {
  id: string
  key: string
  name: string
  description: string | null
  kind: "dynamic" | "static" | ((string & {}))
  rules: SegmentRules | null
  member_count: number
  last_evaluated_at: string | null
  is_active: boolean
  created_at: string
  updated_at: string
}
export type SegmentHistory = {
  day: string
  member_count: number
}
export type SegmentHistoryList = {
  data: Array<SegmentHistory>
}
export type SegmentMember = {
  app_user_id: string
  entered_at: string
  app_users: PreviewSegmentResultSample
}
export type SegmentMemberPage = {
  data: Array<SegmentMember>
  total: number
  offset: number
  limit: number
}
export type SegmentPage = {
  data: Array<Segment>
  total: number
  offset: number
  limit: number
}
export type SegmentReply = {
  data: Segment
}
export type SegmentRules = {
  /** All of. Every one of these holds. */
  and?: Array<SegmentRules>
  /** Any of. At least one of these holds. */
  or?: Array<SegmentRules>
  /** Not. This does not hold. */
  not?: SegmentRules
  /** About. `user`, `property`, `event`, `streak`, `xp`, `level`, `currency`, `inventory`, `achievement`, `role`, `challenge`, `entitlement` or `segment`. */
  source?: string
  /** Field. A field of the user or a property, by path; of events the number that is summed. */
  column?: string
  /** Comparison. As in filters; `in` and `not_in` another segment, `active` and `inactive` of an entitlement. */
  op?: string
  /** Value. What it is compared with; a time may be `{"days_ago": 7}`. */
  value?: unknown
  /** Key. Of the streak, currency, item, achievement, role or challenge. */
  key?: string
  /** Event. The event that is measured. */
  event_name?: string
  /** Measure. What is taken of the events: their number, a sum of a property, the time of the last. */
  measure?: "count" | "sum" | "min" | "max" | "first_at" | "last_at"
  /** Within days. Only events of the last days, such as 7. */
  within_days?: number
  /** Since. Only events from this moment on. */
  since?: string | {
    /** Days ago. Counted back from now. */
    days_ago?: number
  }
  /** Until. Only events before this moment. */
  until?: string | {
    /** Days ago. Counted back from now. */
    days_ago?: number
  }
  /** Only events that match. A filter on the properties of the event. */
  where?: Filter
  /** Entitlement. The id of an entitlement. */
  entitlement_id?: string
  /** Segment. The id of another segment. */
  segment_id?: string
} & Record<string, unknown>
export type SendAiMessagesInput = {
  /** Provider. Whose model is called. */
  provider: "anthropic" | "openai" | "google" | "mistral"
  /** Request. As the provider takes it. */
  body: Record<string, unknown>
}
export type SendEmailBatchInput = {
  /** Messages. Up to 100; all of them are queued, or none. */
  messages: Array<SendEmailInput>
}
export type SendEmailInput = {
  /** To. An address; or name a user. */
  to?: string
  /** User. The user who gets it; or name an address. */
  user_id?: string
  /** Template. The key of a template, such as `receipt`. */
  template_key?: string
  /** Variables. What fills the marks of the template, such as `{"amount": 12}`. */
  variables?: Record<string, unknown>
  /** Subject. One line; marks such as `{{name|friend}}` are filled in. */
  subject?: string
  /** HTML. The message for mail programs that show HTML. */
  html?: string
  /** Text. The message as plain text. */
  text?: string
  /** From. An address, or a name and an address. */
  from?: string
  /** Reply to. The address that answers go to. */
  reply_to?: string
  /** Headers. Further headers, such as `{"X-Campaign": "may"}`. */
  headers?: Record<string, unknown>
  /** Send at. The moment at which it starts. */
  send_at?: string
  /** Category. What users can unsubscribe from, such as `news`. */
  category?: string
  /** Track. Counts who opens it and who follows its links. Default: `false`. */
  track?: boolean
}
export type SendEmailList = {
  data: Array<SendEmailResult>
}
export type SendEmailReply = {
  data: SendEmailResult
}
export type SendEmailResult = {
  id: string
  status: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed" | "cancelled" | "suppressed" | ((string & {}))
}
export type SendEventsInput = {
  /** Event. The name of an event, such as `lesson_completed`. */
  event_name: string
  /** Properties. What is known of it, such as `{"lesson": 3}`; at most 32 KB. */
  properties?: Record<string, unknown>
  /** Occurred at. When it happened. */
  occurred_at?: string
  /** Id. A uuid of your own: an event sent again with it counts once. */
  id?: string
  /** Session. The id of a session of the app. */
  session_id?: string
  /** User. The id of the user; a server says it for each event. */
  app_user_id?: string
  /** History. Imports events of any age: they count and notify nobody. Default: `false`. */
  historical?: boolean
} | {
  /** Events. At most 500, from a server 1000. */
  events: Array<{
    /** Event. The name of an event, such as `lesson_completed`. */
    event_name: string
    /** Properties. What is known of it, such as `{"lesson": 3}`; at most 32 KB. */
    properties?: Record<string, unknown>
    /** Occurred at. When it happened. */
    occurred_at?: string
    /** Id. A uuid of your own: an event sent again with it counts once. */
    id?: string
    /** Session. The id of a session of the app. */
    session_id?: string
    /** User. The id of the user; a server says it for each event. */
    app_user_id?: string
  }>
  /** Include effects. Whether the answer shows what each event caused. Default: `false`. */
  include_effects?: boolean
  /** History. Imports events of any age: they count and notify nobody. Default: `false`. */
  historical?: boolean
}
export type SendEventsReply = {
  data: ({
    event: {
      id: string
      app_user_id: string
      event_name: string
      properties: Record<string, unknown>
      occurred_at: string
      source: "client" | "server" | "webhook" | "system" | ((string & {}))
      session_id: string | null
    }
    clock_adjusted?: true
    schema_violation?: true
    effects: Effect
  }) | ({
    accepted: number
    duplicates: number
    rejected: number
    results: Array<{
      index: number
      id?: string
      status: "accepted" | "duplicate" | "rejected" | ((string & {}))
      clock_adjusted?: true
      schema_violation?: true
      code?: string
      message?: string
    }>
    effects?: Effect
  })
}
export type SendFriendRequestInput = {
  /** User. The id of the user. */
  user_id?: string
  /** Friend code. The code that the other user shows; or a user id. */
  friend_code?: string
}
export type SendMessageInput = {
  /** Text. Of the message. */
  body: string
  /** Kind. A word of yours, such as `text` or `sticker`. Default: `"text"`. */
  message_type?: string
  /** Metadata. Any JSON object of your own, kept and returned as it is. Default: `{}`. */
  metadata?: Record<string, unknown>
  /** Attachments. At most 10 files by address. Default: `[]`. */
  attachments?: Array<{
    /** Address. An https address. */
    url: string
    /** Type. Such as `image/png`. */
    content_type?: string
    /** Size. In bytes. */
    size_bytes?: number
    /** Metadata. Any JSON object of your own, kept and returned as it is. */
    metadata?: Record<string, unknown>
  }>
  /** Answers. The id of the message that it answers. */
  parent_message_id?: string | null
}
export type SendPushInput = {
  /** Users. The ids of the users who get it. */
  user_ids: Array<string>
  /** Message. What devices show. */
  message: CreatePushAutomationInputMessage
  /** Inbox. Keeps it in the inbox of the app as well. Default: `true`. */
  inbox?: boolean
}
export type SendReportsInput = {
  /** Reports. What happened, 1 to 50. */
  reports: Array<{
    /** Id. A uuid, by which a report whose answer was lost is known again. */
    id?: string | null
    /** Kind. What it is: a log, an error, a crash, or a measurement. */
    kind: "log" | "error" | "crash" | "performance"
    /** Level. How bad it is. */
    level: "debug" | "info" | "warn" | "error" | "fatal"
    /** Message. What happened; what is longer than 4,096 bytes is cut. */
    message: string
    /** Stack. A frame a line; what is longer than 32,768 bytes is cut. */
    stack?: string | null
    /** Context. Whatever helps to understand it, up to 16 KB. */
    context?: Record<string, unknown> | null
    /** Fingerprint. Reports with the same are one issue. */
    fingerprint?: string | null
    /** Occurred at. When it happened. */
    occurred_at?: string | null
    /** App version. Such as `1.4.0`. */
    app_version?: string | null
    /** System version. Such as `iOS 26.1`. */
    os_version?: string | null
    /** Device. Such as `Pixel 9`. */
    device_model?: string | null
  }>
}
export type SendReportsReply = {
  data: SendReportsResult
}
export type SendReportsResult = {
  accepted: number
  dropped: number
}
export type SendTypingReply = {
  data: SendTypingResult
}
export type SendTypingResult = {
  accepted: true
}
export type ServiceAccount = {
  id: string
  organization_id: string
  name: string
  scopes: Array<string>
  project_ids: Array<string> | null
  is_active: boolean
  last_used_at: string | null
  created_at: string
}
export type ServiceAccountPage = {
  data: Array<ServiceAccount>
  total: number
  offset: number
  limit: number
}
export type ServiceAccountReply = {
  data: ServiceAccount
}
export type Session = {
  id: string
  created_at: string
  last_used_at: string
  platform: string | null
  app_version: string | null
  ip_country: string | null
  current: boolean
}
export type SessionPage = {
  data: Array<Session>
  total: number
  offset: number
  limit: number
}
export type SetAiPromptBudgetInput = {
  /** Budget. In US dollars; null ends the budget. */
  budget_usd: number | null
  /** Per. A day, a month, or in all. */
  budget_period?: "daily" | "monthly" | "total"
}
export type SetCatalogItemContentsInput = {
  /** Contents. What a bundle consists of. */
  bundle_contents: Array<{
    /** Item. The key of another item. */
    content_item_key: string
    /** Quantity. How many of it. */
    quantity: number
  }>
}
export type SetCatalogItemPricesInput = {
  /** Prices. One for each currency that buys it. */
  prices: Array<{
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
    /** Price. How much of the currency it costs. */
    price: number
  }>
}
export type SetContentLocaleInput = {
  /** Fields. The texts and values by their names, whole: what is left out is gone in the new version. */
  fields: Record<string, unknown>
  /** Base version. The version that these fields were made from; 0 where there was none. */
  base_version?: number | null
}
export type SetContentTypeInput = {
  /** Fields. The fields that entries of the type have, at most 100. */
  fields: Array<{
    /** Name. The name of the field, such as `title`. */
    name: string
    /** Type. What its value is. */
    type: "text" | "markdown" | "number" | "boolean" | "date" | "media" | "reference" | "json"
    /** Required. The default language must have it. Default: `false`. */
    required?: boolean
    /** Translated. Off: every language shows the value of the default language. Default: `true`. */
    localized?: boolean
  }>
}
export type SetEmailPreferencesInput = {
  /** Categories. On or off for each, such as `{"news": false}`. */
  categories?: Record<string, unknown>
  /** Nothing at all. No mail but what is needed, such as codes. */
  unsubscribed_all?: boolean
}
export type SetEventDefinitionInput = {
  /** Description. A note about what it is for. Default: `null`. */
  description?: string | null
  /** Status. Blocked events are refused; deprecated ones are accepted and marked. Default: `"active"`. */
  status?: "active" | "blocked" | "deprecated"
  /** Schema of the properties. A JSON Schema; an event that violates it is kept and marked. */
  schema?: (Record<string, unknown> | boolean) | null
  /** Share kept. The share of the events that stay in the log, 0 to 1; all of them count. Default: `1`. */
  sample_rate?: number
}
export type SetFeedSettingsInput = {
  /** Events. What becomes an entry by itself, such as `achievement.unlocked`. */
  events: Array<string>
}
export type SetLeagueUserInput = {
  /** Tier. The key of a tier of the league. */
  tier_key: string
}
export type SetModerationTrustInput = {
  /** User. The id of the user. */
  app_user_id: string
  /** Trust. Kept for your own use; the queue does not read it. */
  trust_level?: "new" | "trusted" | "moderator"
  /** Approve at once. Kept for your own use; the queue does not read it. */
  auto_approve?: boolean
}
export type SetModerationTrustReply = {
  data: SetModerationTrustResult
}
export type SetModerationTrustResult = {
  app_user_id: string
  trust_level: "new" | "trusted" | "moderator" | ((string & {}))
  auto_approve: boolean
  created_at: string
  updated_at: string
}
export type SetMonetizationDefinitionsInput = {
  /** What you sell. The whole declaration; it replaces the former one. */
  monetization: {
    /** Entitlements. What users get access to. Default: `[]`. */
    entitlements?: Array<{
      /** Key. The name in code and in calls. */
      key: string
      /** Display name. The name that others see. Default: `null`. */
      display_name?: string | null
      /** Description. A note about what it is for. Default: `null`. */
      description?: string | null
      /** Products. The keys of the products that give it. Default: `[]`. */
      product_keys?: Array<string>
    }>
    /** Products. What is sold in stores. Default: `[]`. */
    products?: Array<{
      /** Key. The name in code and in calls. */
      key: string
      /** Store. Such as `app_store` or `play_store`. */
      store: string
      /** Store id. What the store calls it. */
      store_identifier: string
      /** Kind. A subscription, or something that is bought once. Default: `null`. */
      type?: "subscription" | "one_time" | "consumable" | "non_consumable" | "non_renewing_subscription" | null
      /** Display name. The name that others see. Default: `null`. */
      display_name?: string | null
      /** For the store. Such as `push_to_store`, `duration` and `subscription_group_name`. Default: `{}`. */
      store_metadata?: Record<string, unknown>
    }>
    /** Offerings. What is shown together. Default: `[]`. */
    offerings?: Array<{
      /** Key. The name in code and in calls. */
      key: string
      /** Display name. The name that others see. Default: `null`. */
      display_name?: string | null
      /** Current. The one that apps show. Default: `false`. */
      is_current?: boolean
      /** Packages. The choices of an offering. Default: `[]`. */
      packages?: Array<{
        /** Offering. The key of an offering. */
        offering_key?: string
        /** Key. The name in code and in calls. */
        key: string
        /** Product. The key of the product that is sold. Default: `null`. */
        product_key?: string | null
        /** Position. Lower numbers come first. Default: `null`. */
        position?: number | null
      }>
    }>
    /** Paywalls. The screens that sell an offering. Default: `[]`. */
    paywalls?: Array<{
      /** Key. The name in code and in calls. */
      key: string
      /** Offering. The key of an offering. */
      offering_key: string
      /** Template. The design of the screen. Default: `null`. */
      template?: string | null
      /** Display. Texts and colours, as the template takes them. Default: `{}`. */
      display?: Record<string, unknown>
    }>
  }
}
export type SetPasswordInput = {
  /** Password. At least 8 characters. */
  password: string
  /** Current password. Where the user has one. */
  current_password?: string
}
export type SetPushPreferencesInput = {
  /** Push. Off: the user gets none. Default: `true`. */
  enabled?: boolean
  /** Categories. On or off for each, such as `{"news": false}`. */
  categories?: Record<string, boolean>
  /** Quiet hours. No push in these hours of the user. */
  quiet_hours?: SetPushPreferencesInputQuietHour
  /** Time zone. An IANA name, such as `Europe/Berlin`. */
  timezone?: string | null
}
export type SetPushPreferencesInputQuietHour = {
  /** From. A time of day, such as `22:00`. */
  start: string
  /** Until. A time of day, such as `07:00`. */
  end: string
} | null
export type SetRealtimeRoomsInput = {
  /** Rules. The first that matches the name of a room decides. */
  rules: Array<{
    /** Rooms. A name, with * for any characters. */
    pattern: string
    /** Who sends. `authenticated`, `server` or `role:<key>`. */
    publish: string
    /** Presence. Who is there is shown to the others. Default: `true`. */
    presence?: boolean
    /** Who listens. `authenticated` or `role:<key>`. */
    listen?: string
  }>
}
export type SetReviewSettingsInput = {
  /** Publish at once. Reviews that no moderation rule catches. Default: `true`. */
  reviews_auto_publish?: boolean
  /** Buyers only. Items are reviewed by users who were given or bought them. Default: `false`. */
  reviews_require_purchase?: boolean
  /** Prompt. Whom an app may ask for a review in the app store. */
  prompt?: {
    /** Segment. Only its members are asked. */
    segment_id?: string | null
    /** Sessions. How many sessions a user has had before. Default: `3`. */
    min_sessions?: number
    /** Gap. Days between two prompts; 0 for none. Default: `90`. */
    gap_days?: number
  }
}
export type SetSpendCeilingInput = {
  /** Ceiling. US dollars in a month; null ends the ceiling. */
  amount_usd: number | null
}
export type SetXpLevelsInput = {
  /** Levels. The whole table; it replaces the former one. */
  levels?: Array<{
    /** Level. Numbered from 1, without a gap. */
    level: number
    /** XP needed. The total at which a user reaches the level; 0 for level 1. */
    xp_required: number
    /** Name. Such as `Sprout`. */
    name?: string | null
    /** Icon. The address of a picture. */
    icon_url?: string | null
    /** Reward. What a user gets on reaching it, once. */
    reward?: Reward | null
  }>
  /** Generate. Makes the table by a formula, in place of a list of levels. */
  generate?: {
    /** Levels. How many levels. */
    count: number
    /** Base. XP of level 2; the formula is base * (level - 1) ^ exponent. */
    base: number
    /** Exponent. How fast it gets harder: 1 is even, 2 is steep. */
    exponent: number
  }
}
export type SignInAnonymouslyInput = {
  /** Anonymous id. The id of a device: `anon_` and 32 to 128 characters. */
  anonymous_id?: string
}
export type SignInDeveloperInput = {
  /** Email address. */
  email: string
  /** Password. */
  password: string
}
export type SignInDeveloperReply = {
  data: SignInDeveloperResult
}
export type SignInDeveloperResult = {
  access_token: string
  refresh_token: string
  developer: {
    id: string
    email: string
    name: string | null
    oauth_providers: Array<string>
    email_verified: boolean
    has_password: boolean
    account_state: "sandbox" | "verified_free" | "paid" | ((string & {}))
    can_provision: boolean
    created_at: string
    updated_at: string
  }
}
export type SignInDeveloperWithCodeInput = {
  /** Email address. */
  email: string
  /** Code. Six digits from the mail. */
  code: string
}
export type SignInWithEmailCodeInput = {
  /** Email address. */
  email: string
  /** Code. Six digits. */
  code: string
}
export type SignInWithMagicLinkInput = {
  /** Token. Of the mailed link. */
  token: string
}
export type SignInWithPhoneCodeInput = {
  /** Phone number. In international form, such as `+4915112345678`. */
  phone: string
  /** Code. Six digits. */
  code: string
}
export type SignInWithProviderInput = {
  /** Way. A way to sign in. */
  provider: "apple" | "google"
  /** ID token. As Apple or Google gave it to the app. */
  id_token: string
  /** Nonce. The text that the app asked for the token with. */
  nonce?: string
  /** Name. What people read, in lists and in messages. */
  name?: string
}
export type SignOutDeveloperInput = {
  /** Refresh token. Of the session. */
  refresh_token: string
}
export type SignOutInput = {
  /** Refresh token. Of the session. */
  refresh_token: string
  /** Everywhere. Ends all sessions of the user. Default: `false`. */
  all?: boolean
}
export type SignUpDeveloperInput = {
  /** Email address. */
  email: string
  /** Password. At least 8 characters. */
  password: string
  /** Name. Your name, as your team sees it. */
  name?: string
  /** Invite code. Where sign-up is by invitation. */
  invite_code?: string
}
export type SignUpWithPasswordInput = {
  /** Email address. */
  email: string
  /** Password. At least 8 characters. */
  password: string
  /** Display name. The name that others see. */
  display_name?: string
}
export type SimulateChallengeReply = {
  data: SimulateChallengeResult
}
export type SimulateChallengeResult = {
  expected_completions: number
  rate: number | null
  is_estimate: boolean
  margin: number
}
export type SimulateModerationRuleInput = {
  /** Days. How many of the last days are looked at. Default: `7`. */
  days?: number
}
export type SimulateModerationRuleReply = {
  data: SimulateModerationRuleResult
}
export type SimulateModerationRuleResult = {
  days: number
  checked: number
  caught: number
  by_kind: Record<string, unknown>
  is_complete: boolean
}
export type SimulateStreakInput = {
  /** Changed rules. The fields that would be different. Default: `{}`. */
  definition?: UpdateStreakDefinitionInput
  /** Since. From when stored events are replayed; at most 366 days ago. */
  since?: string
}
export type SimulateStreakReply = {
  data: SimulateStreakResult
}
export type SimulateStreakResult = {
  is_estimate: boolean
  margin: number
  users: number
  broken_before: number
  broken_after: number
  median_length_before: number | null
  median_length_after: number | null
}
export type SimulateXpRuleInput = {
  /** Since. From when stored events are replayed. */
  since?: string
}
export type SimulateXpRuleReply = {
  data: SimulateXpRuleResult
}
export type SimulateXpRuleResult = {
  awards: number
  users: number
  total: number
  is_estimate: boolean
  margin: number
  per_user: {
    median: number | null
    p90: number | null
    max: number | null
  }
}
export type SourceMap = {
  id: string
  release: string
  bundle: string
  sha256: string
  size: number
  packed_size: number
  created_at: string
  updated_at: string
}
export type SourceMapPage = {
  data: Array<SourceMap>
  total: number
  offset: number
  limit: number
}
export type SourceMapReply = {
  data: SourceMap
}
export type SpendCeiling = {
  spend_ceiling_usd: number | null
}
export type SpendCeilingReply = {
  data: SpendCeiling
}
export type SpendCurrencyInput = {
  /** Amount. How much, a whole number. */
  amount: number
  /** Reason. Why, for the records. */
  reason: string
  /** Metadata. Any JSON object of your own, kept and returned as it is. Default: `{}`. */
  metadata?: Record<string, unknown>
}
export type Sql = {
  columns: Array<{
    name: string
    type: string
  }>
  rows: Array<Array<string | number | boolean | null>>
  row_count: number
  is_cut: boolean
  duration_ms: number
  plan: Record<string, unknown> | null
}
export type SqlReply = {
  data: Sql
}
export type StartAppSessionInput = {
  /** Id. A uuid of your own: a start sent again with it counts once. */
  id?: string
  /** Platform. Such as `ios`. */
  platform?: string | null
  /** App version. Such as `2.10.0`. */
  app_version?: string | null
  /** System version. Such as `19.1`. */
  os_version?: string | null
  /** Device. Such as `iPhone17,3`. */
  device_model?: string | null
  /** Language. Such as `de-AT`. */
  locale?: string | null
  /** Started at. When the app was opened. */
  started_at?: string
}
export type StartDeviceSignInInput = {
  /** Tool. What asks, such as `trellis cli`. */
  client_name: string
}
export type StartDeviceSignInReply = {
  data: StartDeviceSignInResult
}
export type StartDeviceSignInResult = {
  device_code: string
  user_code: string
  verification_uri: string
  expires_in: number
  interval: number
}
export type StartGithubSignInReply = {
  data: StartGithubSignInResult
}
export type StartGithubSignInResult = {
  authorize_url: string
  state: string
}
export type Status = {
  checkpoint: string | null
  last_pull_at: string | null
  last_push_at: string | null
  pending_changes: number
}
export type StatusReply = {
  data: Status
}
export type StorageBucket = {
  name: string
  max_object_bytes: number | null
}
export type StorageBucketList = {
  data: Array<StorageBucket>
}
export type StorageObject = {
  key: string
  asset_id: string
  size_bytes: number
  mime_type: string
  created_at: string
}
export type StorageObjectCursorPage = {
  data: Array<StorageObject>
  pagination: CurrencyTransactionPagination
}
export type StorageUsage = {
  buckets: Array<{
    bucket: string
    bytes: number
    objects: number
  }>
  registered_bytes: number
  limit_bytes: number | null
}
export type StorageUsageReply = {
  data: StorageUsage
}
export type Store = {
  id: string
  key: string
  name: string
  description: string | null
  starts_at: string | null
  ends_at: string | null
  sort_order: number
}
export type StoreDefinition = Store & ({
  segment_id: string | null
  is_active: boolean
  offers: Array<StoreOffer>
  created_at: string
  updated_at: string
})
export type StoreDefinitionPage = {
  data: Array<StoreDefinition>
  total: number
  offset: number
  limit: number
}
export type StoreDefinitionReply = {
  data: StoreDefinition
}
export type StoreDetail = Store & ({
  offers: Array<{
    id: string
    key: string
    item: StoreDetailOffer
    quantity: number
    prices: Array<{
      currency_code: string
      price: number
      original_price: number | null
    }>
    badge: string | null
    available: boolean
    reason: "not_started" | "no_price" | "limit_reached" | "out_of_stock" | "max_owned" | null | ((string & {}))
    remaining_for_user: number | null
    remaining_stock: number | null
    can_afford: boolean
    starts_at: string | null
    ends_at: string | null
  }>
})
export type StoreDetailOffer = {
  id: string
  key: string
  name: string
  item_type: "consumable" | "durable" | "bundle" | "currency_pack" | ((string & {}))
  icon_url: string | null
}
export type StoreDetailReply = {
  data: StoreDetail
}
export type StoreOffer = {
  id: string
  store_id: string
  key: string
  catalog_item_id: string
  catalog_item_key: string
  quantity: number
  prices: Array<{
    currency_code: string
    price: number
    original_price: number | null
  }>
  limit_per_user: number | null
  limit_period: "total" | "day" | "week" | "month" | ((string & {}))
  stock_total: number | null
  stock_sold: number
  starts_at: string | null
  ends_at: string | null
  segment_id: string | null
  badge: string | null
  sort_order: number
  is_active: boolean
  created_at: string
  updated_at: string
}
export type StoreOfferReply = {
  data: StoreOffer
}
export type StorePage = {
  data: Array<Store>
  total: number
  offset: number
  limit: number
}
export type StoreStats = {
  purchases: number
  refunded: number
  buyers: number
  units: number
  revenue: Record<string, number>
  offers: Array<{
    offer_id: string
    key: string
    purchases: number
    units: number
    revenue: Record<string, number>
  }>
}
export type StoreStatsReply = {
  data: StoreStats
}
export type Streak = {
  id: string
  streak_definition_id: string
  key: string
  name: string
  qualifying_event: string
  status: "active" | "at_risk" | "frozen" | "broken" | "none" | ((string & {}))
  current_count: number
  longest_count: number
  started_on: string | null
  last_qualified_at: string | null
  freezes_remaining: number
  period: StreakPeriod
  pauses: Array<PauseStreakInput>
  updated_at: string
}
export type StreakDaily = {
  from: string
  to: string
  timezone: string
  series: {
    kept: Array<{
      date: string
      value: number
    }>
    users: Array<{
      date: string
      value: number
    }>
    broken: Array<{
      date: string
      value: number
    }>
  }
}
export type StreakDailyReply = {
  data: StreakDaily
}
export type StreakDefinition = {
  id: string
  key: string
  name: string
  description: string | null
  qualifying_event: string
  event_filter: Filter | null
  period: "day" | "week" | "month" | ((string & {}))
  min_count: number
  week_starts_on: number
  timezone_mode: "user" | "fixed" | ((string & {}))
  timezone: string | null
  grace_hours: number
  freezes_initial: number
  freezes_max: number
  freeze_earn_every: number
  at_risk_hours: number
  restore_window_hours: number
  milestones: Array<{
    count: number
    reward: Reward
  } & Record<string, unknown>>
  allow_client_qualify: boolean
  is_active: boolean
  created_at: string
  updated_at: string
}
export type StreakDefinitionPage = {
  data: Array<StreakDefinition>
  total: number
  offset: number
  limit: number
}
export type StreakDefinitionReply = {
  data: StreakDefinition
}
export type StreakDetail = Streak & ({
  history: Array<{
    period_key: string
    start: string
    end: string
    status: "qualified" | "frozen" | "paused" | "missed" | ((string & {}))
    count: number
  }>
})
export type StreakDetailReply = {
  data: StreakDetail
}
export type StreakList = {
  data: Array<Streak>
}
export type StreakPeriod = {
  key: string
  start: string
  end: string
  deadline: string
  qualified: boolean
}
export type StreakReply = {
  data: Streak
}
export type StreakStats = {
  is_estimate: boolean
  margin: number
  active: number
  at_risk: number
  frozen: number
  broken_7d: number
  distribution: Array<{
    bucket: string
    users: number
  }>
  freezes_used_7d: number
  saved_by_freeze: number
}
export type StreakStatsReply = {
  data: StreakStats
}
export type StreakUser = Streak & {
  app_user_id: string
  app_users: FriendUser
  user?: AiInvocationUser
}
export type StreakUserPage = {
  data: Array<StreakUser>
  total: number
  offset: number
  limit: number
}
export type SubmitLeaderboardScoreInput = {
  /** Score. A number of -10^18 to 10^18; a string where it has 16 digits or more. */
  score: number | string
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
}
export type SubmitLeaderboardScoreReply = {
  data: SubmitLeaderboardScoreResult
}
export type SubmitLeaderboardScoreResult = {
  entry: LeaderboardEntry
  previous: ({
    score: number | string
    rank: number | null
  }) | null
  improved: boolean
}
export type Subscription = {
  id: string
  app_user_id: string
  product_id: string | null
  store: string
  status: "trial" | "active" | "grace" | "cancelled" | "paused" | "refunded" | "expired" | ((string & {}))
  period_type: string
  purchase_date: string
  expiration_date: string | null
  auto_renew: boolean
  environment: "production" | "sandbox" | ((string & {}))
  updated_at: string
  user?: AiInvocationUser
}
export type SubscriptionDetail = {
  id: string
  app_user_id: string
  product_id: string | null
  store: string
  status: "trial" | "active" | "grace" | "cancelled" | "paused" | "refunded" | "expired" | ((string & {}))
  period_type: string
  purchase_date: string
  expiration_date: string | null
  auto_renew: boolean
  environment: "production" | "sandbox" | ((string & {}))
  updated_at: string
  grants: Array<{
    id: string
    source: "subscription_provider" | "promotional" | "reward" | "referral" | "purchase" | ((string & {}))
    source_ref: string
    is_active: boolean
    product_id: string | null
    store: string
    period_type: string
    purchase_date: string
    expiration_date: string | null
    grace_until: string | null
    cancelled_at: string | null
    refunded_at: string | null
    reason: string | null
    created_at: string
    updated_at: string
    entitlement_id: string
  }>
  source_ref: string
  events: Array<{
    id: string
    type: string
    event_at: string
    received_at: string
    outcome: "applied" | "older" | "waiting" | "unknown_user" | "without_effect" | ((string & {}))
    product_id: string | null
    period_type: string | null
    expiration_date: string | null
  }>
}
export type SubscriptionDetailReply = {
  data: SubscriptionDetail
}
export type SubscriptionPage = {
  data: Array<Subscription>
  total: number
  offset: number
  limit: number
}
export type SubscriptionSummary = {
  statuses: {
    trial: number
    active: number
    grace: number
    cancelled: number
    paused: number
    refunded: number
    expired: number
  } & Record<string, unknown>
  trials_30d: {
    started: number
    converted: number
  }
  active_by_product: Array<{
    product_id: string | null
    store: string
    active: number
  }>
}
export type SubscriptionSummaryReply = {
  data: SubscriptionSummary
}
export type SyncStats = {
  change_log_rows: number
  oldest: string | null
  lag_seconds: number
  rejected_24h: Record<string, number>
}
export type SyncStatsReply = {
  data: SyncStats
}
export type TestEmailCampaignInput = {
  /** Users. The ids of the users who get it. */
  user_ids: Array<string>
}
export type TestEmailCampaignReply = {
  data: TestEmailCampaignResult
}
export type TestEmailCampaignResult = {
  delivery_ids: Array<string>
}
export type TestIntegrationReply = {
  data: TestIntegrationResult
}
export type TestIntegrationResult = {
  ok: boolean
  latency_ms: number
  error: string | null
}
export type TestModerationRuleInput = {
  /** Text. A text to try the rule on. */
  text: string
}
export type TestModerationRuleReply = {
  data: TestModerationRuleResult
}
export type TestModerationRuleResult = {
  matches: boolean
  found: Array<string>
  action: "queue" | "hide" | "block" | ((string & {}))
  is_active: boolean
}
export type TestOauthProviderReply = {
  data: TestOauthProviderResult
}
export type TestOauthProviderResult = {
  ok: boolean
  latency_ms: number
  error: string | null
  message: string | null
}
export type TestWebhookReply = {
  data: TestWebhookResult
}
export type TestWebhookResult = {
  status_code: number | null
  error: string | null
  duration_ms: number
  response_excerpt: string
  delivered: boolean
}
export type ToggleFlagInput = {
  /** On. Off: every user gets the value when off. */
  is_enabled: boolean
}
export type TransferGroupInput = {
  /** User. The id of the user. */
  user_id: string
}
export type TransferInput = {
  /** Organization. The id of an organization. */
  organization_id: string
}
export type TransferReply = {
  data: TransferResult
}
export type TransferResult = {
  id: string
  name: string
  developer_id: string
  organization_id: string
  bundle_id: string | null
  google_oauth_client_id: string | null
  platform: "ios" | "android" | "all" | ((string & {}))
  environment: string
  tier: "free" | "pro" | "enterprise" | ((string & {}))
  effective_tier: "free" | "pro" | "enterprise" | ((string & {}))
  comped: boolean
  default_from_email: string | null
  default_from_name: string | null
  default_reply_to: string | null
  magic_link_redirect_url: string | null
  auth_email_brand_name: string | null
  user_search_enabled: boolean
  graphql_enabled: boolean
  rest_enabled: boolean
  anonymous_reads: boolean
  created_at: string
  updated_at: string
}
export type UnlinkIdentityInput = {
  /** Way. A way to sign in. */
  provider: string
  /** Account. Which of several accounts of that way. */
  provider_id?: string
}
export type UnreadCounts = {
  total: number
  conversations: Array<{
    id: string
    unread: number
    mentions: number
  }>
}
export type UnreadCountsReply = {
  data: UnreadCounts
}
export type UnseenAchievement = {
  id: string
  key: string
  name: string
  description: string | null
  icon_url: string | null
  xp_reward: number
  is_hidden: boolean
  sort_order: number
  unlocked: boolean
  unlocked_at: string | null
  progress: {
    current: number
    target: number
    ratio: number
  }
  rarity: number
}
export type UnseenAchievementList = {
  data: Array<UnseenAchievement>
}
export type UnvoteReviewReply = {
  data: UnvoteReviewResult
}
export type UnvoteReviewResult = {
  id: string
  helpful_count: number
  voted: boolean
}
export type UpdateAchievementDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Icon. The address of a picture. */
  icon_url?: string | null
  /** XP. Points that the user gets with it, once. */
  xp_reward?: number
  /** Criteria. A value of the user and the target that it must reach. */
  criteria?: Criteria
  /** Hidden. Users see it only when they have it. */
  is_hidden?: boolean
  /** Order. Lower numbers come first. */
  sort_order?: number
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateCatalogItemDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Icon. The address of a picture. */
  icon_url?: string | null
  /** Category. A word by which apps list items. */
  category?: string | null
  /** Tags. Words to find it by. */
  tags?: Array<string>
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
  /** Most owned. How many a user can have. */
  max_owned?: number | null
  /** Lasts. Seconds after which it expires. */
  duration_seconds?: number | null
  /** Effect. What a user gets by using it, or at once from a currency pack. */
  use_effect?: Reward | null
  /** Active. Users see active items only. */
  is_active?: boolean
}
export type UpdateChallengeDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Starts at. What happens from this moment on counts. */
  start_at?: string
  /** Ends at. What happens from this moment on counts no more. */
  end_at?: string
  /** Goal. Events of one name, XP earned, or the longest streak within the time. */
  goal_type?: "event_count" | "xp_earned" | "streak_maintained"
  /** Target. How many events, how much XP, or how many periods in a row. */
  goal_value?: number
  /** Event. The event that is counted; only for a number of events. */
  event_name?: string | null
  /** XP. Points for completing it. */
  reward_xp?: number
  /** Achievement. The id of an achievement that is unlocked by completing it. */
  reward_achievement_id?: string | null
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
  /** Further reward. Currencies, items and the like for completing it. */
  reward?: Reward | null
  /** Segment. Only users in this segment. */
  segment_id?: string | null
  /** Repeats. A new turn begins when one is over. */
  recurrence?: "none" | "daily" | "weekly" | "monthly"
  /** Teams. Each user alone, or groups together against the goal. */
  team_mode?: "none" | "group"
}
export type UpdateCollectionColumnInput = {
  /** Name. Small letters, digits and _, such as `price`. */
  name?: string
  /** May be empty. Whether a row may have no value. */
  nullable?: boolean
  /** Default. The value of a new row; `{"$fn": "now"}` is the time, `uuid` and `user_id` the others. */
  default?: unknown
  /** Type. What it holds. */
  type?: CollectionColumnType
  /** Longest text. In characters. */
  max_length?: number | null
  /** Choices. The only values that it takes. */
  enum?: Array<unknown> | null
  /** Least. Of numbers. */
  min?: (number | string) | null
  /** Greatest. Of numbers. */
  max?: (number | string) | null
  /** Moderated. Rules of moderation read it. */
  moderated?: boolean
}
export type UpdateCollectionColumnReply = {
  data: CollectionColumn | CreateCollectionResult
}
export type UpdateCollectionInput = {
  /** Description. A note about what it is for. */
  description?: string | null
  /** Rows belong to. A user, or a group. It never changes. */
  owner_scope?: "user" | "group"
  /** Who reads. `owner`, `public`, `member`, `member:<rank>` or `role:<key>`. */
  read_policy?: string
  /** Who writes. `owner`, `authenticated`, `member:<rank>` or `role:<key>`. */
  write_policy?: string
  /** Sync. Whether devices pull and push its rows. */
  sync?: boolean
  /** Realtime. Changes are sent to apps that listen. */
  realtime?: boolean
}
export type UpdateCollectionReply = {
  data: Collection | CreateCollectionResult
}
export type UpdateConfigKeyInput = {
  /** Value. What apps get, unless a condition says something else. */
  value?: unknown
  /** Description. A note about what it is for. */
  description?: string | null
  /** Conditions. Other values for some users: the first that matches wins. */
  conditions?: Array<{
    /** Segment. Users who are in this segment. */
    segment_id?: string | null
    /** Share of users. In percent, 0 to 100. */
    percentage?: number | null
    /** Value. What these users get. */
    value: unknown
  } & Record<string, unknown>>
}
export type UpdateContentInput = {
  /** Default language. The language that stands in for missing ones, such as `en` or `pt-BR`. */
  default_locale?: string
  /** Tags. Words to find it by. */
  tags?: Array<string>
  /** Segment. Only users in this segment. */
  segment_id?: string | null
  /** From. Apps do not see it before. */
  starts_at?: string | null
  /** Until. Apps do not see it from then on. */
  ends_at?: string | null
  /** Order. Lists begin with the lowest number. */
  sort_order?: number
}
export type UpdateControlPlaneWebhookInput = {
  /** Address. A public https address of yours that takes a POST. */
  target_url?: string
  /** Events. Such as `project.created`; `*` is all of them. */
  event_types?: Array<"*" | "project.created" | "project.deleted" | "project.provisioned" | "project.provisioning_failed" | "api_key.created" | "api_key.revoked" | "member.joined" | "member.removed" | "deployment.ready" | "deployment.failed" | "quota.warning" | "quota.exceeded" | "webhook.degraded" | "domain.verified" | "audit.event">
  /** Status. Active delivers; disabled stops new deliveries. */
  status?: "active" | "disabled"
}
export type UpdateConversationInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string | null
  /** Muted until. No push for it until then. */
  muted_until?: string | null
  /** Archived. The list leaves it out, for the caller alone. */
  archived?: boolean
}
export type UpdateCurrencyDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Icon. The address of a picture. */
  icon_url?: string | null
  /** Starting balance. What every user has at first. */
  initial_grant?: number
  /** Highest balance. Credits above it are refused. */
  max_balance?: number
  /** Apps may spend. A server acting for the user always may. */
  client_spendable?: boolean
  /** Regeneration. Fills a balance up by itself, as the energy of a game. */
  regen?: CreateCurrencyDefinitionInputRegen
  /** Days until credits expire. Of credits without an end of their own; purchased ones never expire. */
  expiry_days?: number | null
  /** Active. Switched off, users do not see it and balances cannot change. */
  is_active?: boolean
}
export type UpdateDeveloperInput = {
  /** Name. Your name, as your team sees it. */
  name?: string | null
  /** Password. At least 8 characters. */
  password?: string
  /** Current password. Your password as it is now. */
  current_password?: string
}
export type UpdateEmailCampaignInput = {
  /** Name. For your team; users do not see it. */
  name?: string
  /** Audience. All users, a segment, some users by id, or those that a filter matches. */
  audience?: CreateEmailCampaignInputAudience
  /** Leave out. Users in this segment get nothing. */
  exclude_segment_id?: string | null
  /** Schedule. At one moment for all, or at a time of day in the time zone of each user. */
  schedule?: CreateEmailCampaignInputSchedule
  /** Messages per minute. How many are sent at most. */
  throttle_per_minute?: number | null
  /** Quiet hours. Users whose own time is within are skipped. */
  quiet_hours?: SetPushPreferencesInputQuietHour
  /** Cap. Users who got so many messages lately are skipped. */
  frequency_cap?: {
    /** Messages. How many a user may have got. */
    max: number
    /** Hours. In how many hours. */
    hours: number
  } | null
  /** Goal. An event within 24 hours of the message that counts as success. */
  goal_event?: string | null
  /** Template. One whose category is not transactional: users can unsubscribe from it. */
  template_key?: string
  /** Variables. The same for all users; other marks are properties of the user. */
  variables?: Record<string, unknown> | null
  /** From. An address, or a name and an address. */
  from?: string | null
  /** Reply to. The address that answers go to. */
  reply_to?: string | null
  /** Track. Counts who opens it and who follows its links. */
  track?: boolean
  /** Variants. Templates that are tried against each other. */
  variants?: Array<{
    /** Key. The name of the variant in statistics, such as `a`. */
    key: string
    /** Share. In percent of the users; who is beyond the sum gets nothing. */
    weight: number
    /** Template. What these users get. */
    template_key: string
  }>
  /** Send at. Starts at this moment. */
  send_at?: string | null
}
export type UpdateEmailTemplateInput = {
  /** Name. For your team. */
  name?: string
  /** Subject. One line; marks such as `{{name|friend}}` are filled in. */
  subject?: string
  /** HTML. The message for mail programs that show HTML. */
  html?: string | null
  /** Text. The message as plain text. */
  text?: string | null
  /** Translations. Subject, html and text by language, such as `{"de": {"subject": "Hallo"}}`. */
  locales?: Record<string, unknown>
  /** Category. What users can unsubscribe from, such as `news`; transactional mail always goes out. */
  category?: string
}
export type UpdateFlagInput = {
  /** Name. What people read in lists. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** On. Off: every user gets the value when off. */
  is_enabled?: boolean
  /** Value when off. What every user gets while it is off. */
  off_value?: unknown
  /** Value for everybody else. What users get whom no rule matches. */
  default_value?: unknown
  /** Rules. From top to bottom: the first that matches a user gives the value. */
  rules?: Array<FlagRule>
  /** Schedule. Changes at moments to come. */
  schedule?: Array<FlagStep>
  /** Tags. Words to find it by. */
  tags?: Array<string>
  /** Owner. Who answers for it: a name or an address. */
  owner?: string | null
}
export type UpdateFriendInput = {
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
}
export type UpdateGroupInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Avatar. The address of a picture. */
  avatar_url?: string | null
  /** Public. Anybody finds it and joins; else by invitation. */
  is_public?: boolean
  /** Most members. How many it takes. */
  max_members?: number
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
}
export type UpdateGroupMemberInput = {
  /** Role. Owner, admin, member, or viewer who only reads. */
  role?: "owner" | "admin" | "member" | "viewer"
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
}
export type UpdateIntegrationInput = {
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateInventoryItemInput = {
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: {
    /** Data of the user. Keys are merged; null removes one. */
    user?: Record<string, unknown>
  }
}
export type UpdateIssueInput = {
  /** Status. Resolved issues open again by newer versions, ignored ones never. */
  status?: "open" | "resolved" | "ignored"
}
export type UpdateLeaderboardDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Where scores come from. Sent by your servers or apps, or taken from events, XP, a currency or a streak. */
  source?: {
    /** Source. What makes scores. */
    type: "manual"
  } | ({
    /** Source. What makes scores. */
    type: "event"
    /** Event. The event that makes a score. */
    event_name: string
    /** Property with the score. A number among the properties of the event. */
    value_property?: string | null
    /** Only events that match. A filter on the properties of the event. */
    filter?: Filter | null
  }) | CreateLeaderboardDefinitionInputSource | {
    /** Source. What makes scores. */
    type: "currency"
    /** Currency. The code of a currency, such as `COINS`. */
    currency_code: string
  } | {
    /** Source. What makes scores. */
    type: "streak"
    /** Streak. The key of the streak whose length is the score. */
    streak_key: string
  }
  /** Scoring. How several scores of a user combine: the best, their sum, the last, or their number. */
  scoring?: "best" | "sum" | "last" | "count"
  /** Order. Descending: the highest score wins. Ascending: the lowest, as for times. */
  sort?: "desc" | "asc"
  /** Reset. A new run begins each day, week or month, or never. */
  period?: "all_time" | "daily" | "weekly" | "monthly"
  /** Time zone. Where days and weeks begin: an IANA name, such as `Europe/Berlin`. */
  timezone?: string
  /** Starts at. Scores before this moment are not accepted. */
  starts_at?: string | null
  /** Ends at. Scores from this moment on are not accepted. */
  ends_at?: string | null
  /** Segment. Only users in this segment. */
  segment_id?: string | null
  /** Apps may submit. Otherwise only servers may send scores. */
  client_writable?: boolean
  /** Lowest score. Single scores below it are refused. */
  min_score?: (number | string) | null
  /** Highest score. Single scores above it are refused. */
  max_score?: (number | string) | null
  /** Submissions per minute. How many scores a user may send in a minute. */
  max_per_minute?: number
  /** Rewards. By rank, given when a run closes. */
  rewards?: Array<{
    /** From rank. The best rank that gets it; 1 is the first. */
    from_rank: number
    /** To rank. The last rank that gets it, included. */
    to_rank: number
    /** Reward. What each of these users gets. */
    reward: Reward
  }>
  /** Runs kept. How many closed runs are kept. */
  keep_runs?: number
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateLeagueDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Tiers. From the lowest to the highest; users begin in the lowest. */
  tiers?: Array<{
    /** Key. The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes. */
    key: string
    /** Name. What people read. */
    name?: string
    /** Icon. The address of a picture. */
    icon_url?: string | null
    /** Promoted. How many of a cohort go up a tier. Default: `0`. */
    promote_count?: number
    /** Relegated. How many of a cohort go down a tier. Default: `0`. */
    relegate_count?: number
  }>
  /** Users in a cohort. How many users of a tier play against each other at most. */
  cohort_size?: number
  /** Season. A run ends each day, week or month. Fixed once a run has members. */
  period?: "daily" | "weekly" | "monthly"
  /** Time zone. Where days and weeks begin: an IANA name, such as `Europe/Berlin`. */
  timezone?: string
  /** Where points come from. XP, or events that you name. */
  points?: CreateLeagueDefinitionInputPoint | ({
    /** Points. XP that is gained in the run, or events. */
    type: "event"
    /** Event. The event that gives points. */
    event_name: string
    /** Property with the points. A number among the properties of the event. */
    value_property?: string | null
  })
  /** Points to join. Who has gained so many in a run enters it. */
  min_points_to_join?: number
  /** No points relegate. A member whose points are taken back to 0 is relegated in any cohort. */
  inactive_relegates?: boolean
  /** Rewards. By tier and rank, given when a run closes. */
  rewards?: Array<{
    /** Tier. The key of the tier that the run was played in. */
    tier_key: string
    /** From rank. The best rank that gets it; 1 is the first. */
    from_rank: number
    /** To rank. The last rank that gets it, included. */
    to_rank: number
    /** Reward. What each of these users gets. */
    reward: Reward
  }>
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateMeInput = {
  /** Display name. The name that others see. */
  display_name?: string
  /** Avatar. The address of a picture. */
  avatar_url?: string | null
  /** Properties. Keys are merged; null removes one. */
  properties?: Record<string, unknown>
  /** Time zone. An IANA name, such as `Europe/Berlin`. */
  timezone?: string
}
export type UpdateMediaBucketInput = {
  /** Public. Anybody reads the file at its lasting address. */
  is_public?: boolean
  /** Largest file. In bytes, at most 50 MB. */
  file_size_limit?: number | null
  /** Types. Such as `image/png` or `image/*`. */
  allowed_mime_types?: Array<string> | null
}
export type UpdateMediaCatalogDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Public. Apps read it without a session. */
  is_public?: boolean
  /** Files. The ids of the files, in their order. */
  asset_ids?: Array<string>
}
export type UpdateMediaFolderInput = {
  /** Name. Such as `Banners`. */
  name?: string
}
export type UpdateMediaInput = {
  /** Description. Of a picture, for people who do not see it. */
  alt_text?: string | null
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
  /** Folder. The id of a folder. */
  folder_id?: string | null
  /** Public. Anybody reads the file at its lasting address. */
  is_public?: boolean
}
export type UpdateMessageInput = {
  /** Text. Of the message. */
  body?: string
  /** Metadata. Any JSON object of your own, kept and returned as it is. */
  metadata?: Record<string, unknown>
}
export type UpdateModerationRuleInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Kind. What it looks for: words, a pattern, links, too many texts, new accounts, or reports. */
  rule_type?: "keyword" | "regex" | "report_threshold" | "rate" | "link" | "new_account"
  /** Settings. The fields of its kind, `applies_to` and `action`: queue, hide or block. */
  config?: Record<string, unknown>
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateOnboardingFlowInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Steps. What the user sees, in this order. */
  steps?: Array<{
    /** Id. The name of the step in code. */
    id?: string | null
    /** Kind. Text, a question, a permission, an action, a paywall, a field, or one of your own. */
    type?: "info" | "question" | "permission" | "action" | "paywall" | "input" | "custom"
    /** Title. What the user reads first. */
    title?: string | null
    /** Description. A note about what it is for. */
    description?: string | null
    /** Settings. As the kind of step takes them. */
    config?: Record<string, unknown>
    /** Can be skipped. Whether the user may go on without it. Default: `true`. */
    skippable?: boolean
    /** Segment. Only users in this segment. */
    segment_id?: string | null
  } & Record<string, unknown>>
  /** Active. New users get the newest active flow. */
  is_active?: boolean
}
export type UpdateOrganizationInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
}
export type UpdateOrganizationMemberInput = {
  /** Role. Viewers read, developers build, admins manage people and keys, owners may do all. */
  role?: "viewer" | "developer" | "admin" | "owner"
}
export type UpdateProjectInput = {
  /** Name. What your team calls it; users see it in mails. */
  name?: string
  /** Bundle id. Of the app at Apple, such as `com.example.garden`: for signing in with Apple. */
  bundle_id?: string | null
  /** Google client id. For signing in with Google. */
  google_oauth_client_id?: string | null
  /** Platform. Where the app runs. */
  platform?: "ios" | "android" | "all"
  /** Environment. Development allows sessions for tests and providers that only write a log. */
  environment?: "development" | "production"
  /** Sender. The address of mails, on a domain that is verified. */
  default_from_email?: string | null
  /** Name of the sender. Shown beside the address. */
  default_from_name?: string | null
  /** Reply to. The address that answers go to. */
  default_reply_to?: string | null
  /** Link for signing in. Where mailed links lead: an address of your app. */
  magic_link_redirect_url?: string | null
  /** Brand. The name in mails for signing in. */
  auth_email_brand_name?: string | null
  /** Search for users. Users find each other by name. */
  user_search_enabled?: boolean
  /** GraphQL. Your team queries the database by GraphQL. */
  graphql_enabled?: boolean
  /** REST. Collections are served to supabase-js and other clients of PostgREST. */
  rest_enabled?: boolean
  /** Reads without signing in. By REST the client key alone reads public collections and public files. */
  anonymous_reads?: boolean
}
export type UpdateProjectReply = {
  data: UpdateProjectResult
}
export type UpdateProjectResult = {
  id: string
  name: string
  updated_at: string
}
export type UpdatePushAutomationInput = {
  /** Trigger. An event, or a user who enters or leaves a segment. */
  trigger?: CreatePushAutomationInputTrigger
  /** Delay. Seconds from the cause to the message. */
  delay_seconds?: number
  /** Cancel on. An event that stops the message during the delay. */
  cancel_if_event?: string | null
  /** Message. What devices show; leave it out to use a template. */
  message?: CreatePushAutomationInputMessage
  /** Template. The key of a template, in place of a message. */
  template_key?: string
  /** Cap. Users who got so many messages lately are skipped. */
  frequency_cap?: {
    /** Messages. How many a user may have got. */
    max: number
    /** Hours. In how many hours. */
    hours: number
  } | null
  /** Quiet hours. Users whose own time is within are skipped. */
  quiet_hours?: SetPushPreferencesInputQuietHour
  /** Inbox. Keeps it in the inbox of the app as well. */
  inbox?: boolean
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdatePushCampaignInput = {
  /** Name. For your team; users do not see it. */
  name?: string
  /** Audience. All users, a segment, some users by id, or those that a filter matches. */
  audience?: CreateEmailCampaignInputAudience
  /** Leave out. Users in this segment get nothing. */
  exclude_segment_id?: string | null
  /** Schedule. At one moment for all, or at a time of day in the time zone of each user. */
  schedule?: CreateEmailCampaignInputSchedule
  /** Messages per minute. How many are sent at most. */
  throttle_per_minute?: number | null
  /** Quiet hours. Users whose own time is within are skipped. */
  quiet_hours?: SetPushPreferencesInputQuietHour
  /** Cap. Users who got so many messages lately are skipped. */
  frequency_cap?: {
    /** Messages. How many a user may have got. */
    max: number
    /** Hours. In how many hours. */
    hours: number
  } | null
  /** Goal. An event within 24 hours of the message that counts as success. */
  goal_event?: string | null
  /** Message. What devices show. */
  message?: CreatePushAutomationInputMessage
  /** Variants. Messages that are tried against each other. */
  variants?: Array<{
    /** Key. The name of the variant in statistics, such as `a`. */
    key: string
    /** Share. In percent of the users; who is beyond the sum gets nothing. */
    weight: number
    /** Message. What these users get. */
    message: CreatePushAutomationInputMessage
  }>
  /** Inbox. Keeps it in the inbox of the app as well. */
  inbox?: boolean
  /** Send at. Starts at this moment. */
  send_at?: string | null
}
export type UpdatePushTemplateInput = {
  /** Name. For your team. */
  name?: string | null
  /** Message. What devices show. */
  message?: CreatePushAutomationInputMessage
}
export type UpdateReferralCodeInput = {
  /** Reward for who invited. What the owner of the code gets; promo codes have none. */
  reward_referrer?: Reward
  /** Reward for who claims. What the user gets who enters the code. */
  reward_referee?: Reward
  /** Most claims. How many users can claim it. */
  max_uses?: number | null
  /** Active. Switched off, it cannot be claimed. */
  is_active?: boolean
}
export type UpdateReferralDefaultsInput = {
  /** Reward for who invited. What the owner of the code gets; promo codes have none. */
  reward_referrer?: Reward
  /** Reward for who claims. What the user gets who enters the code. */
  reward_referee?: Reward
  /** Most claims. How many users can claim it. */
  max_uses?: number | null
  /** Event to qualify. Who invited is rewarded when the new user sends this event. */
  qualify_event?: string | null
  /** Days to qualify. In how many days after the claim the event must come. */
  qualify_within_days?: number | null
  /** Link to share. An address with `{code}` in it. */
  share_url?: string | null
}
export type UpdateReviewInput = {
  /** Status. Users see published reviews. */
  status: "pending" | "published" | "rejected" | "hidden"
}
export type UpdateReviewPage = {
  data: Array<UpdateReviewResult>
  total: number
  offset: number
  limit: number
}
export type UpdateReviewReply = {
  data: UpdateReviewResult
}
export type UpdateReviewResult = {
  id: string
  app_user_id: string
  subject_type: string
  subject_id: string
  rating: number
  title: string | null
  body: string | null
  status: "pending" | "published" | "rejected" | "hidden" | ((string & {}))
  helpful_count: number
  reply: {
    body: string
    at: string
  } | null
  locale: string | null
  app_version: string | null
  created_at: string
  updated_at: string
  user: ChallengeLeaderboardUser
}
export type UpdateRoleInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Permissions. Words that your app checks, such as `posts:delete`. */
  permissions?: Array<string>
  /** For everybody. Every user has it, without being given it. Only one role can be it. */
  is_default?: boolean
}
export type UpdateSegmentInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Rules. Who belongs to a dynamic segment. */
  rules?: SegmentRules | null
  /** Active. Switched off, it has no members. */
  is_active?: boolean
}
export type UpdateServiceAccountInput = {
  /** Name. What the program is, such as `Agents`. */
  name?: string
  /** Scopes. What it may do, such as `users:read`. */
  scopes?: Array<string>
  /** Projects. The ids of the only projects that it reaches. */
  project_ids?: Array<string> | null
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateStoreDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Segment. Only users in this segment. */
  segment_id?: string | null
  /** From. Users do not see it before. */
  starts_at?: string | null
  /** Until. Users do not see it from then on. */
  ends_at?: string | null
  /** Active. Users see active stores only. */
  is_active?: boolean
  /** Order. Lists begin with the lowest number. */
  sort_order?: number
}
export type UpdateStoreOfferInput = {
  /** Quantity. How many of the item a unit gives. */
  quantity?: number
  /** Prices. What a unit costs, one for each currency. None: the prices of the item. */
  prices?: Array<{
    /** Currency. The code of a currency. */
    currency_code: string
    /** Price. How much of the currency a unit costs; 0 is free. */
    price: number
    /** Former price. A higher price that apps show beside it. */
    original_price?: number | null
  }>
  /** Limit of a user. How many units a user may buy in a period. */
  limit_per_user?: number | null
  /** Period. Days, weeks and months of UTC, after which a user may buy again; or for ever. */
  limit_period?: "total" | "day" | "week" | "month"
  /** Stock. How many units all users may buy. */
  stock_total?: number | null
  /** From. Users see it before, but cannot buy it. */
  starts_at?: string | null
  /** Until. Users do not see it from then on. */
  ends_at?: string | null
  /** Segment. Only users in this segment. */
  segment_id?: string | null
  /** Badge. A word that apps show with it, such as `Best value`. */
  badge?: string | null
  /** Order. The store begins with the lowest number. */
  sort_order?: number
  /** Active. Users see active offers only. */
  is_active?: boolean
}
export type UpdateStreakDefinitionInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Description. A note about what it is for. */
  description?: string | null
  /** Qualifying event. The event that counts, such as `lesson_completed`. */
  qualifying_event?: string
  /** Only events that match. A filter on the properties of the event. */
  event_filter?: Filter | null
  /** Period. What must be filled without a gap: each day, week or month. Fixed once users have the streak. */
  period?: "day" | "week" | "month"
  /** Events per period. How many events fill a period. */
  min_count?: number
  /** Week starts on. 1 is Monday, 7 (or 0) Sunday. */
  week_starts_on?: number
  /** Whose time zone. The zone of each user, or one fixed zone for all. */
  timezone_mode?: "user" | "fixed"
  /** Fixed time zone. An IANA name, such as `Europe/Berlin`; only with a fixed zone. */
  timezone?: string | null
  /** Grace hours. Hours after the end of a missed period in which it can still be filled. */
  grace_hours?: number
  /** Freezes at the start. A freeze fills a missed period. How many a user has at first. */
  freezes_initial?: number
  /** Most freezes. How many a user can hold at once. */
  freezes_max?: number
  /** Periods for a freeze. Filled periods that earn one more freeze; 0: none are earned. */
  freeze_earn_every?: number
  /** At risk before the deadline. Hours before its deadline at which an unfilled period is at risk. */
  at_risk_hours?: number | null
  /** Restore window. Hours in which an administrator can restore a broken streak. */
  restore_window_hours?: number
  /** Milestones. Rewards for lengths, each given once per chain. */
  milestones?: Array<{
    /** Length. The number of periods in a row, such as 30. */
    count: number
    /** Reward. What the user gets at this length. */
    reward: Reward
  }>
  /** Apps may qualify. An app may fill the current period without an event. A server acting for the user always may. */
  allow_client_qualify?: boolean
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateUserInput = {
  /** Display name. The name that others see. */
  display_name?: string
  /** Avatar. The address of a picture. */
  avatar_url?: string | null
  /** External id. The id of the user in a system of yours. */
  external_id?: string | null
  /** Email address. */
  email?: string | null
  /** Phone number. In international form, such as `+4915112345678`. */
  phone?: string | null
  /** Time zone. An IANA name, such as `Europe/Berlin`. */
  timezone?: string | null
  /** Properties. Any JSON object, such as `{"plan": "pro"}`. */
  properties?: Record<string, unknown>
  /** Banned. A banned user can do nothing until it is lifted. */
  is_banned?: boolean
  /** Muted until. Until then the user cannot write to others; null ends it. */
  muted_until?: string | null
  /** Merge properties. Keys are merged, a null removes its key; otherwise they are replaced. */
  merge_properties?: boolean
  /** Password. At least 8 characters. */
  password?: string
  /** Email is verified. The address is known to be theirs. Otherwise it belongs to whoever proves it. */
  verify_email?: boolean
  /** Phone is verified. The number is known to be theirs. Otherwise it belongs to whoever proves it. */
  verify_phone?: boolean
}
export type UpdateWebhookInput = {
  /** Event. One of your events, or a system event such as `svc.user.created`. */
  event_name?: string
  /** Address. A public https address of yours that takes a POST. */
  target_url?: string
  /** Status. Active delivers; disabled stops new deliveries. */
  status?: "active" | "disabled"
  /** Description. A note about what it is for. */
  description?: string | null
  /** Only events that match. A filter on the properties of the event. */
  filter?: Filter | null
}
export type UpdateXpBoostInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Times. All XP is multiplied by this: 2 doubles it. */
  multiplier?: number
  /** Starts at. The moment from which it applies. */
  starts_at?: string
  /** Ends at. From this moment on it has no effect. */
  ends_at?: string | null
  /** Segment. Only users in this segment. */
  segment_id?: string | null
  /** Rules. The keys of the rules that it boosts. */
  rule_keys?: Array<string> | null
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UpdateXpRuleInput = {
  /** Name. What people read, in lists and in messages. */
  name?: string
  /** Event. The event that earns XP, such as `lesson_completed`. */
  event_name?: string
  /** Only events that match. A filter on the properties of the event. */
  event_filter?: Filter | null
  /** XP per event. A fixed number of points; leave it out if a property says it. */
  amount?: number | null
  /** Property with the amount. A number among the properties of the event, such as `score`. */
  amount_property?: string | null
  /** Times. The number of the property is multiplied by this and rounded down. */
  multiplier?: number
  /** Most per event. XP that one event can earn. */
  max_per_event?: number | null
  /** Most per day. XP in a day of UTC. */
  max_per_day?: number | null
  /** Cooldown. Seconds after an award in which the rule earns nothing. */
  cooldown_seconds?: number | null
  /** Most in all. XP that a user can ever earn by this rule. */
  max_total?: number | null
  /** Starts at. Before this moment it has no effect. */
  starts_at?: string | null
  /** Ends at. From this moment on it has no effect. */
  ends_at?: string | null
  /** Active. Switched off, it stays defined and has no effect. */
  is_active?: boolean
}
export type UploadMediaInput = {
  /** File name. Such as `banner.png`. */
  filename: string
  /** Type. Such as `image/png`. */
  mime_type: string
  /** Size. In bytes, at most 50 MB. */
  size_bytes?: number
  /** Public. Anybody reads the file at its lasting address. Default: `false`. */
  is_public?: boolean
}
export type UploadMediaReply = {
  data: UploadMediaResult
  upload_url: string
  upload_url_expires_at: string
}
export type UploadMediaResult = {
  id: string
  filename: string
  storage_url: string
  uploaded_by: string | null
}
export type Usage = {
  from: string
  to: string
  interval: "day"
  series: {
    mau: Array<{
      date: string
      value: number
    }>
    events: Array<{
      date: string
      value: number
    }>
    api_requests: Array<{
      date: string
      value: number
    }>
    storage_bytes: Array<{
      date: string
      value: number
    }>
    egress_bytes: Array<{
      date: string
      value: number
    }>
    push_sent: Array<{
      date: string
      value: number
    }>
    emails_sent: Array<{
      date: string
      value: number
    }>
    ai_spend_usd: Array<{
      date: string
      value: number
    }>
    function_ms: Array<{
      date: string
      value: number
    }>
    failed_requests: Array<{
      date: string
      value: number
    }>
  }
}
export type UsageReply = {
  data: Usage
}
export type User = {
  id: string
  email: string | null
  phone: string | null
  display_name: string
  avatar_url: string | null
  external_id: string | null
  anonymous_id: string | null
  auth_providers: Array<{
    provider: string
    provider_id: string
  }>
  properties: Record<string, unknown>
  timezone: string | null
  email_verified: boolean
  phone_verified: boolean
  first_seen_at: string
  last_seen_at: string
  is_banned: boolean
  muted_until: string | null
  created_at: string
  updated_at: string
}
export type UserAchievement = {
  id: string
  key: string
  name: string
  description: string | null
  icon_url: string | null
  xp_reward: number
  unlocked_at: string
  rarity: number
}
export type UserAchievementPage = {
  data: Array<UserAchievement>
  total: number
  offset: number
  limit: number
}
export type UserAppSession = {
  id: string
  app_user_id: string
  started_at: string
  last_seen_at: string
  ended_at: string | null
  duration_seconds: number | null
  platform: string | null
  app_version: string | null
  os_version: string | null
  device_model: string | null
  locale: string | null
  end_reason: "client" | "timeout" | "replaced" | null | ((string & {}))
}
export type UserAppSessionPage = {
  data: Array<UserAppSession>
  total: number
  offset: number
  limit: number
}
export type UserAppSessionReply = {
  data: UserAppSession
}
export type UserDetail = {
  id: string
  display_name: string
  avatar_url: string | null
} & Record<string, unknown>
export type UserDetailList = {
  data: Array<UserDetail>
}
export type UserDetailReply = {
  data: UserDetail
}
export type UserDevice = {
  id: string
  platform: "ios" | "android" | ((string & {}))
  provider: "apns" | "fcm" | ((string & {}))
  is_active: boolean
  token_end: string
  created_at: string
  updated_at: string
}
export type UserDevicePage = {
  data: Array<UserDevice>
  total: number
  offset: number
  limit: number
}
export type UserEntitlement = Entitlement & ({
  grants: Array<{
    id: string
    source: "subscription_provider" | "promotional" | "reward" | "referral" | "purchase" | ((string & {}))
    source_ref: string
    is_active: boolean
    product_id: string | null
    store: string
    period_type: string
    purchase_date: string
    expiration_date: string | null
    grace_until: string | null
    cancelled_at: string | null
    refunded_at: string | null
    reason: string | null
    created_at: string
    updated_at: string
  }>
})
export type UserEntitlementList = {
  data: Array<UserEntitlement>
}
export type UserEvent = {
  id: string
  app_user_id: string
  event_name: string
  properties: Record<string, unknown>
  occurred_at: string
  source: string
  session_id: string | null
}
export type UserEventPage = {
  data: Array<UserEvent>
  total: number
  offset: number
  limit: number
}
export type UserPage = {
  data: Array<User>
  total: number
  offset: number
  limit: number
}
export type UserReply = {
  data: User
}
export type UserRole = {
  role_key: string
  app_user_id: string
  group_id: string | null
  granted_by: string | null
  expires_at: string | null
  created_at: string
  role_name: string
}
export type UserRoleList = {
  data: Array<UserRole>
}
export type UserSegment = {
  id: string
  key: string
  name: string
  kind: "static" | "dynamic" | ((string & {}))
  entered_at: string
}
export type UserSegmentList = {
  data: Array<UserSegment>
}
export type UserSession = {
  session_token: string
  refresh_token: string
  user: Me
  is_new_user: boolean
}
export type UserSessionReply = {
  data: UserSession
}
export type VerifyAuditEventsReply = {
  data: VerifyAuditEventsResult
}
export type VerifyAuditEventsResult = {
  verified: boolean
  checked: number
  first_broken_id: string | null
  sealed_through_id: string | null
  unsealed: number
}
export type Webhook = {
  id: string
  event_name: string
  target_url: string
  description: string | null
  filter: Record<string, unknown> | null
  include_user: boolean
  status: "active" | "disabled" | "degraded" | ((string & {}))
  created_at: string
  updated_at: string
}
export type WebhookDelivery = {
  id: string
  webhook_id: string
  event_id: string
  event_name: string
  idempotency_key: string
  status: "pending" | "delivered" | "failed" | "dlq" | ((string & {}))
  failed_reason: WebhookDeliveryDetailFailedReason
  attempt_count: number
  next_attempt_at: string | null
  held_until: string | null
  created_at: string
  settled_at: string | null
  attempts: Array<{
    n: number
    at: string
    status_code: number | null
    error: string | null
    duration_ms: number
  }>
}
export type WebhookDeliveryCursorPage = {
  data: Array<WebhookDelivery>
  pagination: CurrencyTransactionPagination
}
export type WebhookDeliveryDetail = {
  id: string
  webhook_id: string
  event_id: string
  event_name: string
  idempotency_key: string
  status: "pending" | "delivered" | "failed" | "dlq" | ((string & {}))
  failed_reason: WebhookDeliveryDetailFailedReason
  attempt_count: number
  next_attempt_at: string | null
  held_until: string | null
  created_at: string
  settled_at: string | null
  attempts: Array<{
    n: number
    at: string
    status_code: number | null
    error: string | null
    duration_ms: number
    response_excerpt: string | null
  }>
  payload: Record<string, unknown>
}
export type WebhookDeliveryDetailFailedReason = "attempts_exhausted" | "held_too_long" | "gone" | "target_not_allowed" | "subscription_disabled" | null | ((string & {}))
export type WebhookDeliveryDetailReply = {
  data: WebhookDeliveryDetail
}
export type WebhookDeliveryReply = {
  data: WebhookDelivery
}
export type WebhookDetail = Webhook & ({
  stats: {
    delivered_24h: number
    failed_24h: number
    p95_ms: number | null
    pending: number
  }
})
export type WebhookDetailReply = {
  data: WebhookDetail
}
export type WebhookPage = {
  data: Array<Webhook>
  total: number
  offset: number
  limit: number
}
export type WebhookReply = {
  data: Webhook
}
export type WriteReviewInput = {
  /** What is reviewed. The kind of the subject. */
  subject_type: string
  /** Id. The id of the subject, or the key of an item or an entry. */
  subject_id?: string | null
  /** Rating. Stars, 1 to 5. */
  rating: number
  /** Title. The review in a few words. */
  title?: string | null
  /** Text. What the user or the developer has to say. */
  body?: string | null
  /** Language. The language of the text. */
  locale?: string | null
  /** App version. Such as `1.4.0`. */
  app_version?: string | null
}
export type XpBoost = {
  id: string
  name: string
  multiplier: number
  starts_at: string
  ends_at: string | null
  segment_id: string | null
  rule_keys: Array<string> | null
  is_active: boolean
  created_at: string
  updated_at: string
}
export type XpBoostPage = {
  data: Array<XpBoost>
  total: number
  offset: number
  limit: number
}
export type XpBoostReply = {
  data: XpBoost
}
export type XpDaily = {
  from: string
  to: string
  timezone: string
  series: {
    points: Array<{
      date: string
      value: number
    }>
    users: Array<{
      date: string
      value: number
    }>
  }
}
export type XpDailyReply = {
  data: XpDaily
}
export type XpHistory = {
  id: string
  app_user_id: string
  amount: number
  total_after: number
  source: "event" | "achievement" | "challenge" | "league" | "reward" | "admin" | "merge" | ((string & {}))
  source_id: string | null
  rule_key: string | null
  reason: string | null
  clipped_by: string | null
  created_at: string
}
export type XpHistoryCursorPage = {
  data: Array<XpHistory>
  pagination: CurrencyTransactionPagination
}
export type XpHistoryReply = {
  data: XpHistory
}
export type XpLevel = {
  level: number
  xp_required: number
  name: string | null
  icon_url: string | null
  reward: Record<string, unknown> | null
}
export type XpLevelList = {
  data: Array<XpLevel>
}
export type XpRule = {
  id: string
  key: string
  name: string
  event_name: string
  event_filter: Filter | null
  amount: number | null
  amount_property: string | null
  multiplier: number
  max_per_event: number | null
  max_per_day: number | null
  cooldown_seconds: number | null
  max_total: number | null
  starts_at: string | null
  ends_at: string | null
  is_active: boolean
  created_at: string
  updated_at: string
}
export type XpRulePage = {
  data: Array<XpRule>
  total: number
  offset: number
  limit: number
}
export type XpRuleReply = {
  data: XpRule
}
export type XpStanding = {
  total: number
  level: number
  level_name: string | null
  level_progress: number
  xp_into_level: number
  xp_to_next: number | null
  today: number
  active_boosts: Array<{
    name: string
    multiplier: number
    ends_at: string | null
  }>
}
export type XpStandingReply = {
  data: XpStanding
}
export type XpStats = {
  total_awarded_7d: number
  is_estimate: boolean
  margin: number
  by_rule: Array<{
    rule_key: string
    awards: number
    users: number
    total: number
  }>
  level_distribution: Array<{
    level: number
    users: number
  }>
}
export type XpStatsReply = {
  data: XpStats
}
export type XpTransaction = {
  id: string
  app_user_id: string
  amount: number
  total_after: number
  source: "event" | "achievement" | "challenge" | "league" | "reward" | "admin" | "merge" | ((string & {}))
  source_id: string | null
  rule_key: string | null
  reason: string | null
  clipped_by: string | null
  created_at: string
  user?: AiInvocationUser
}
export type XpTransactionCursorPage = {
  data: Array<XpTransaction>
  pagination: CurrencyTransactionPagination
}
