// Made from docs/schema/openapi-released.json.gz by `npm run docs`.
export type AcceptInvitesInput = {
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
export type AchievementDefinition = {
  id: string
  key: string
  name: string
  description: string | null
  icon_url: string | null
  xp_reward: number
  criteria: Record<string, unknown>
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
  app_user_id: string
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
  emoji: string
}
export type AddSegmentMembersInput = {
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
  as_user_id?: string
  system?: boolean
}
export type AdminEvaluateFlagInput = {
  user_id: string
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
  app_user_id: string
  reason: string
}
export type AdminInvokeAiPromptInput = {
  context?: Record<string, unknown>
  max_tokens?: number
  stream?: boolean
  response_format?: InvokeAiPromptInputResponseFormat
  messages?: Array<{
    role: "user" | "assistant" | "system"
    content: InvokeAiPromptInputContent
  }>
}
export type AdminSendMessageInput = SendMessageInput & ({
  as_user_id?: string | null
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
  adopt_all?: boolean
  objects?: Array<{
    object_type: string
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
  step_id?: string
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
  filter?: unknown
  group_by?: (Array<string | ({
    column: string
    bucket?: "hour" | "day" | "week" | "month" | "year"
    timezone?: string
  })>) | null
  aggregates: Array<{
    fn: "count" | "count_distinct" | "sum" | "avg" | "min" | "max"
    column?: string | null
    as: string
  }>
  having?: unknown
  order?: Array<AggregateRowsInputOrder> | null
  limit?: number
  include_deleted?: boolean
}
export type AggregateRowsInputOrder = {
  column: string
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
}
export type AiInvocationCursorPage = {
  data: Array<AiInvocation>
  pagination: CurrencyTransactionPagination
}
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
  plan_hash: string
  confirm?: string
  allow_detach_live?: boolean
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
  plan_hash: string
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
  note?: string
}
export type AwardXpInput = {
  amount: number
  reason?: string | null
  app_user_id?: string
}
export type BackfillAchievementInput = {
  notify?: boolean
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
  channel: string
  event: string
  payload: unknown
}
export type BroadcastRealtimeReply = {
  data: BroadcastRealtimeResult
}
export type BroadcastRealtimeResult = {
  delivered_to: number
}
export type BulkUpdateUsersInput = {
  updates: Array<{
    user_id?: string
    external_id?: string
    anonymous_id?: string
    properties?: Record<string, unknown>
    unset_properties?: Array<string>
    set?: {
      display_name?: string
      avatar_url?: string | null
      external_id?: string | null
      email?: string | null
      phone?: string | null
      timezone?: string | null
    }
    add_segments?: Array<string>
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
  use_effect: Record<string, unknown> | null
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
  reward: Record<string, unknown> | null
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
export type CloseLeaderboardRunReply = {
  data: CloseLeaderboardRunResult
}
export type CloseLeaderboardRunResult = {
  key: string
  status: "open" | "closed" | ((string & {}))
  starts_at: string | null
  ends_at: string | null
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
  upload_id: string
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
export type ControlPlaneWebhook = {
  id: string
  organization_id: string
  event_types: Array<string>
  target_url: string
  status: "active" | "disabled" | "degraded" | ((string & {}))
  created_at: string
  updated_at: string
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
  name: string
  scopes?: Array<string>
  project_ids?: Array<string> | null
  expires_in_days?: number | null
}
export type CreateAccessTokenReply = {
  data: CreateAccessTokenResult
}
export type CreateAccessTokenResult = AccessToken & {
  token: string
}
export type CreateAchievementDefinitionInput = UpdateAchievementDefinitionInput & {
  key: string
  name: string
  criteria: Record<string, unknown>
}
export type CreateAiEmbeddingsInput = {
  provider: "openai"
  model: string
  input: string | Array<string>
}
export type CreateAiPromptInput = {
  name: string
  provider: "anthropic" | "openai" | "google" | "mistral" | "echo"
  model: string
  system_prompt?: string | null
  max_tokens?: number
  rate_limit?: ({
    window: number
    max: number
    key?: "user" | "ip" | "project"
  }) | null
  client_invokable?: boolean
  description?: string | null
  log_payloads?: boolean
  cost?: {
    currency_code: string
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
  name: "anthropic" | "openai" | "google" | "mistral"
  api_key: string
}
export type CreateApiKeyInput = {
  key_type: "client" | "server"
  environment: "development" | "production"
}
export type CreateCatalogItemDefinitionInput = UpdateCatalogItemDefinitionInput & ({
  key: string
  name: string
  item_type: "consumable" | "durable" | "bundle" | "currency_pack"
  prices?: Array<{
    currency_code: string
    price: number
  }>
  bundle_contents?: Array<{
    content_item_key: string
    quantity: number
  }>
})
export type CreateChallengeDefinitionInput = UpdateChallengeDefinitionInput & ({
  name: string
  start_at: string
  end_at: string
  goal_type: "event_count" | "xp_earned" | "streak_maintained"
  goal_value: number
})
export type CreateCheckoutInput = {
  tier: "pro" | "enterprise"
}
export type CreateCollectionColumnInput = UpdateCollectionColumnInput & ({
  name: string
  type: CollectionColumnType
  unique?: boolean
  references?: ({
    collection: string
    on_delete?: "set_null" | "cascade" | "restrict"
  }) | null
  dimensions?: number | null
})
export type CreateCollectionIndexInput = {
  name?: string
  columns: Array<string>
  unique?: boolean
  method?: "btree" | "gin" | "trgm" | "hnsw"
  where?: Record<string, unknown> | null
}
export type CreateCollectionIndexReply = {
  data: CreateCollectionIndexResult
}
export type CreateCollectionIndexResult = {
  operation_id: string
  status: "queued"
}
export type CreateCollectionInput = UpdateCollectionInput & {
  name: string
  columns?: Array<CreateCollectionColumnInput>
  indexes?: Array<CreateCollectionIndexInput>
}
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
  key: string
  value: unknown
  value_type?: "string" | "number" | "boolean" | "json"
})
export type CreateControlPlaneWebhookInput = {
  target_url: string
  event_types: Array<"*" | "project.created" | "project.deleted" | "project.provisioned" | "project.provisioning_failed" | "api_key.created" | "api_key.revoked" | "member.joined" | "member.removed" | "deployment.ready" | "deployment.failed" | "quota.warning" | "quota.exceeded" | "webhook.degraded" | "domain.verified" | "audit.event">
  organization_id?: string
}
export type CreateControlPlaneWebhookReply = {
  data: CreateControlPlaneWebhookResult
}
export type CreateControlPlaneWebhookResult = ControlPlaneWebhook & {
  secret: string
}
export type CreateConversationInput = {
  type?: "direct" | "group"
  name?: string | null
  participant_ids: Array<string>
}
export type CreateCurrencyDefinitionInput = UpdateCurrencyDefinitionInput & {
  code: string
  name: string
}
export type CreateCurrencyDefinitionInputRegen = {
  amount: number
  every_seconds: number
  cap: number
} | null
export type CreateCurrencyTransactionInput = {
  app_user_id: string
  adjustments: Array<{
    currency_code: string
    amount: number
  }>
  reason: string
  metadata?: Record<string, unknown>
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
  domain: string
  kind: "email" | "site" | "function"
}
export type CreateEmailCampaignInput = UpdateEmailCampaignInput & ({
  name: string
  audience: CreateEmailCampaignInputAudience
  template_key: string
  workflow_id?: string | null
  send_now?: boolean
})
export type CreateEmailCampaignInputAudience = {
  all: true
} | {
  segment_id: string
} | {
  user_ids: Array<string>
} | {
  filter: Record<string, unknown>
}
export type CreateEmailCampaignInputSchedule = {
  send_at?: string | null
  mode?: "absolute" | "user_local"
  local_time?: string | null
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
  address: string
  reason?: "bounce" | "complaint" | "unsubscribe" | "manual"
  category?: string | null
}
export type CreateEmailTemplateInput = UpdateEmailTemplateInput & {
  key: string
  name: string
  subject: string
}
export type CreateFeedEntryInput = {
  action: string
  target_id?: string | null
  group_id?: string | null
  metadata?: Record<string, unknown>
}
export type CreateFlagInput = UpdateFlagInput & ({
  key: string
  value_type?: "boolean" | "string" | "number" | "json"
})
export type CreateFriendshipInput = {
  user_id: string
  friend_id: string
  status?: "accepted" | "pending"
}
export type CreateGraphqlInput = {
  query: string
  operationName?: string | null
  variables?: Record<string, unknown> | null
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
}
export type CreateGroupInviteInput = {
  max_uses?: number
  expires_in_hours?: number
  role?: "owner" | "admin" | "member" | "viewer"
}
export type CreateIntegrationInput = {
  provider: string
  config: Record<string, unknown>
}
export type CreateLeaderboardDefinitionInput = UpdateLeaderboardDefinitionInput & {
  key: string
  name: string
}
export type CreateMediaCatalogDefinitionInput = {
  slug: string
  name: string
  is_public?: boolean
  asset_ids?: Array<string>
}
export type CreateMediaJobInput = {
  asset_id: string
  operations: Array<{
    type: "resize" | "crop" | "convert" | "strip_metadata" | "thumbnail"
    width?: number
    height?: number
    fit?: "cover" | "contain"
    format?: "webp" | "jpeg" | "png" | "avif"
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
  subject_type: "user" | "message" | "review" | "media" | "feed_entry" | "group" | "collection_row" | "content"
  subject_id: string
  reason: "spam" | "abuse" | "sexual" | "violence" | "self_harm" | "copyright" | "other"
  details?: string
}
export type CreateModerationReportReply = {
  data: CreateModerationReportResult
}
export type CreateModerationReportResult = {
  id: string
  status: "received" | "action_taken" | "no_action" | ((string & {}))
}
export type CreateModerationRuleInput = {
  name: string
  rule_type: "keyword" | "regex" | "report_threshold" | "rate" | "link" | "new_account"
  config?: Record<string, unknown>
  is_active?: boolean
}
export type CreateOnboardingFlowInput = {
  name: string
  steps: Array<{
    id?: string | null
    type?: "info" | "question" | "permission" | "action" | "paywall" | "input" | "custom"
    title?: string | null
    description?: string | null
    config?: Record<string, unknown>
    skippable?: boolean
    segment_id?: string | null
  } & Record<string, unknown>>
  is_active?: boolean
}
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
  project_id?: string | null
  organization_id?: string | null
  scopes: Array<string>
  expires_in_seconds?: number
  label?: string | null
  actor?: string | null
}
export type CreateOperatorTokenReply = {
  data: CreateOperatorTokenResult
}
export type CreateOperatorTokenResult = OperatorToken & {
  token: string
}
export type CreateOrganizationInput = {
  name: string
}
export type CreateOrganizationInviteInput = {
  email: string
  role: "viewer" | "developer" | "admin" | "owner"
}
export type CreateProjectInput = {
  name: string
  bundle_id?: string | null
  google_oauth_client_id?: string | null
  platform?: "ios" | "android" | "all"
  environment?: "development" | "production"
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
export type CreatePushAutomationInput = UpdatePushAutomationInput & {
  key: string
  trigger: CreatePushAutomationInputTrigger
}
export type CreatePushAutomationInputMessage = {
  title: string
  body: string
  data?: Record<string, unknown>
  image_url?: string
  deep_link?: string
  sound?: string
  badge?: number | "increment"
  category?: string
  collapse_key?: string
  ttl_seconds?: number
  priority?: "high" | "normal"
  localized?: Record<string, {
    title?: string
    body?: string
  }>
}
export type CreatePushAutomationInputTrigger = ({
  event_name: string
  filter?: Record<string, unknown> | null
}) | ({
  segment_id: string
  on: "entered" | "exited"
})
export type CreatePushCampaignInput = UpdatePushCampaignInput & ({
  name: string
  audience: CreateEmailCampaignInputAudience
  message: CreatePushAutomationInputMessage
  workflow_id?: string | null
  send_now?: boolean
})
export type CreatePushTemplateInput = {
  key: string
  message: CreatePushAutomationInputMessage
  name?: string | null
}
export type CreateReferralCodeInput = {
  code?: string
  reward_referrer?: Record<string, unknown>
  reward_referee?: Record<string, unknown>
  max_uses?: number | null
}
export type CreateRoleAssignmentInput = {
  app_user_id: string
  group_id?: string | null
  expires_at?: string | null
}
export type CreateRoleInput = UpdateRoleInput & {
  key: string
  name: string
}
export type CreateRowsInput = {
  rows: Array<Record<string, unknown>>
}
export type CreateSegmentInput = UpdateSegmentInput & ({
  key: string
  name: string
  kind?: "dynamic" | "static"
})
export type CreateServiceAccountInput = {
  organization_id: string
  name: string
  scopes: Array<string>
  project_ids?: Array<string> | null
}
export type CreateServiceAccountReply = {
  data: CreateServiceAccountResult
}
export type CreateServiceAccountResult = ServiceAccount & {
  key: string
}
export type CreateStreakDefinitionInput = UpdateStreakDefinitionInput & {
  key: string
  name: string
  qualifying_event: string
}
export type CreateUserInput = {
  external_id?: string | null
  anonymous_id?: string | null
  email?: string | null
  phone?: string | null
  display_name?: string | null
  avatar_url?: string | null
  properties?: Record<string, unknown> | null
}
export type CreateWebhookInput = {
  event_name: string
  target_url: string
  description?: string | null
  filter?: Record<string, unknown> | null
  include_user?: boolean
}
export type CreateWebhookReply = {
  data: CreateWebhookResult
}
export type CreateWebhookResult = Webhook & {
  secret: string
}
export type CreateXpBoostInput = UpdateXpBoostInput & {
  name: string
  multiplier: number
}
export type CreateXpRuleInput = UpdateXpRuleInput & {
  key: string
  name: string
  event_name: string
}
export type CreditCurrencyInput = {
  amount: number
  reason: string
  metadata?: Record<string, unknown>
  expires_at?: string
}
export type CreditCurrencyReply = {
  data: CreditCurrencyResult
}
export type CreditCurrencyResult = {
  transaction: CurrencyTransaction
  balance: number
}
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
  user_code: string
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
  confirm: string
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
  address?: string
}
export type DeleteMeInput = {
  confirm?: "DELETE"
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
export type DeleteStorageObjectsInput = {
  bucket: string
  keys: Array<string>
}
export type DeleteStorageObjectsReply = {
  data: DeleteStorageObjectsResult
}
export type DeleteStorageObjectsResult = {
  accepted: number
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
  criteria: Record<string, unknown>
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
  criteria?: Record<string, unknown>
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
  filter: Record<string, unknown>
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
}
export type EmailMessageCursorPage = {
  data: Array<EmailMessage>
  pagination: CurrencyTransactionPagination
}
export type EmailMessageDetail = EmailMessage & {
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
export type EmailMessageReply = {
  data: EmailMessage
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
export type EndAppSessionInput = {
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
  runs?: number
  cases: Array<{
    context?: Record<string, unknown>
    messages?: Array<{
      role: "user" | "assistant" | "system"
      content: InvokeAiPromptInputContent
    }>
    expect: {
      contains?: string
      regex?: string
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
  attributes?: Record<string, unknown>
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
export type EventDetail = Event & {
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
  filter?: unknown
  search?: FindRowsInputSearch
  order?: Array<AggregateRowsInputOrder> | null
  limit?: number
  offset?: number | null
  cursor?: string | null
  select?: Array<string> | null
  include_deleted?: boolean
  include?: Array<string> | null
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
export type FindDeviceSignInInput = {
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
  column: string
  vector?: Array<unknown>
  text?: string
  metric?: "cosine" | "l2" | "inner_product"
  limit?: number
  filter?: unknown
  max_distance?: number | null
  select?: Array<string> | null
}
export type FindNearestRowsList = {
  data: Array<FindNearestRowsResult>
}
export type FindNearestRowsResult = {
  _distance: number
} & Record<string, unknown>
export type FindRowsInput = {
  filter?: unknown
  search?: FindRowsInputSearch
  order?: Array<AggregateRowsInputOrder> | null
  limit?: number
  offset?: number | null
  cursor?: string | null
  select?: Array<string> | null
  include_deleted?: boolean
  include?: Array<string> | null
}
export type FindRowsInputSearch = {
  q: string
  columns: Array<string>
  fuzzy?: boolean
  threshold?: number
} | null
export type FindUserCohortInput = {
  count: number
  properties?: Record<string, unknown>
  segment_ids?: Array<string>
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
  code: string
  state: string
  invite_code?: string
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
  catalog_item_key: string
  quantity?: number
  expires_at?: string
  reason?: string
}
export type GrantUserEntitlementInput = {
  entitlement_id: string
  expiration_date?: string | null
  duration_days?: number
  product_id?: string | null
  reason?: string | null
}
export type GrantUserStreakFreezesInput = {
  amount: number
}
export type GrantXpInput = {
  app_user_id: string
  amount: number
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
export type ImportCatalogInput = Array<CreateCatalogItemDefinitionInput>
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
  entries: Array<{
    app_user_id: string
    /** From -10^18 to 10^18; a string where it has 16 digits or more */
    score: number | string
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
  document: {
    version: 1
    definitions: Record<string, Record<string, Record<string, unknown>>>
    left_out?: Array<{
      kind: string
      key: string
      code: string
      reason: string
    }>
  }
  plan_hash?: string
  confirm?: string
  kinds?: Array<string>
  /** Of these kinds only these keys */
  keys?: Record<string, Array<string>>
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
  context?: Record<string, unknown>
  max_tokens?: number
  stream?: boolean
  response_format?: InvokeAiPromptInputResponseFormat
  messages?: Array<{
    role: "user" | "assistant"
    content: InvokeAiPromptInputContent
  }>
}
export type InvokeAiPromptInputContent = string | (Array<{
  type: "text"
  text: string
} | ({
  type: "image_url"
  image_url: {
    url: string
    detail?: "auto" | "low" | "high"
  }
})>)
export type InvokeAiPromptInputResponseFormat = ("text" | "json") | ({
  type: "text" | "json" | "json_object"
}) | {
  type: "json_schema"
  json_schema: {
    name: string
    schema: Record<string, unknown>
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
export type JoinChallengeInput = {
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
  code: string
}
export type JoinWaitlistInput = {
  email: string
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
    reward: Record<string, unknown>
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
export type LeaveGroupReply = {
  data: LeaveGroupResult
}
export type LeaveGroupResult = {
  left: true
}
export type LinkIdentityInput = {
  provider: "email"
  email: string
  code: string
  password?: string
  current_password?: string
} | {
  provider: "phone"
  phone: string
  code: string
} | {
  provider: "password"
  password: string
  current_password?: string
} | ({
  provider: "apple" | "google"
  id_token: string
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
export type ListRowsReply = {
  data: Array<Record<string, unknown>>
  next_cursor?: string | null
  offset?: number
  limit?: number
}
export type MarkAchievementsSeenInput = {
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
  alt_text: string | null
  metadata: Record<string, unknown>
  size_bytes: number | null
  folder_id: string | null
  uploaded_by: string | null
  created_at: string
  updated_at: string
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
  subject_type: "user" | "message" | "review" | "media" | "feed_entry" | "group" | "collection_row" | "content" | "ai_invocation" | ((string & {}))
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
export type ModerationQueuePage = {
  data: Array<ModerationQueue>
  total: number
  offset: number
  limit: number
}
export type ModerationQueueReply = {
  data: ModerationQueue
}
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
}
export type ModerationTrustPage = {
  data: Array<ModerationTrust>
  total: number
  offset: number
  limit: number
}
export type ModerationTrustReply = {
  data: ModerationTrust
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
  target: {
    type: string
    id: string | null
  }
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
  start: string
  end: string
}
export type PlanPromotionInput = {
  target_project_id: string
  kinds?: Array<string>
  /** Of these kinds only these keys */
  keys?: Record<string, Array<string>>
  prune?: boolean
}
export type PollDeviceSignInInput = {
  device_code: string
}
export type PresignMediaUploadInput = {
  bucket: string
  key: string
  method: string
  content_type?: string
  expires_in_seconds?: number
  w?: number
  h?: number
  fit?: "cover" | "contain"
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
export type PreviewEmailCampaignInput = {
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
  variables?: Record<string, unknown>
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
  rules: Record<string, unknown>
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
  updated_at: string
  api_keys: Array<RevokeApiKeyResult>
  integrations: Array<Integration>
})
export type ProjectDetailReply = {
  data: ProjectDetail
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
export type PushAutomation = {
  id: string
  key: string
  trigger: ({
    event_name: string
    filter?: Record<string, unknown> | null
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
export type QualifyUserStreakInput = {
  period_key?: string
}
export type RampFlagInput = {
  from: number
  to: number
  step: number
  every_hours: number
  guardrail?: Record<string, unknown> | null
  rule_index?: number
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
  id: string
  type: "delivered" | "bounce" | "complaint"
  bounce_type?: string | null
  address?: string | null
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
  event: {
    id: string
    type: string
  } & Record<string, unknown>
}
export type ReceiveSuperwallEventsInput = {
  id?: string
  event: string
  user_id: string
} & Record<string, unknown>
export type RedeemInviteInput = {
  invite_code: string
}
export type RedeemInviteReply = {
  data: RedeemInviteResult
}
export type RedeemInviteResult = {
  can_provision: true
  redeemed: boolean
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
  token: string
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
  note?: string
  action?: "none" | "warn" | "mute_24h" | "ban"
}
export type ReplayEventsInput = {
  since: string
  until?: string | null
  targets?: Array<string> | null
  user_ids?: Array<string> | null
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
export type ReplaySubscriptionResultBefore = Subscription & ({
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
})
export type ReplayWebhookInput = {
  since?: string | null
  until?: string | null
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
export type ReprovisionProjectInput = {
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
  email: string
}
export type RequestDeveloperCodeReply = {
  data: RequestDeveloperCodeResult
}
export type RequestDeveloperCodeResult = {
  ok: true
}
export type RequestEmailCodeInput = {
  email: string
  purpose?: "sign_in" | "link" | "delete"
}
export type RequestPhoneCodeInput = {
  phone: string
  purpose?: "sign_in" | "link" | "delete"
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
  count?: number
}
export type RevertFlagInput = {
  version: number
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
}
export type RevokeDeveloperSessionReply = {
  data: RevokeDeveloperSessionResult
}
export type RevokeDeveloperSessionResult = {
  deleted: true
}
export type RevokeInventoryInput = {
  app_user_id: string
  catalog_item_key: string
  quantity?: number
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
export type RoleAssignment = {
  role_key: string
  app_user_id: string
  group_id: string | null
  granted_by: string | null
  expires_at: string | null
  created_at: string
}
export type RoleAssignmentPage = {
  data: Array<RoleAssignment>
  total: number
  offset: number
  limit: number
}
export type RoleAssignmentReply = {
  data: RoleAssignment
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
  version: number
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
  operations: Array<{
    op: "insert" | "update" | "upsert" | "delete"
    collection: string
    id?: unknown
    data?: Record<string, unknown>
    $if?: Record<string, unknown>
    conflict_target?: Array<string>
    as?: string
  }>
}
export type RunTransactionReply = {
  data: Array<Record<string, unknown>>
}
export type ScheduleEmailCampaignInput = {
  send_at?: string | null
}
export type Segment = {
  id: string
  key: string
  name: string
  description: string | null
  kind: "dynamic" | "static" | ((string & {}))
  rules: Record<string, unknown> | null
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
export type SendAiMessagesInput = {
  provider: "anthropic" | "openai" | "google" | "mistral"
  body: Record<string, unknown>
}
export type SendEmailBatchInput = {
  messages: Array<SendEmailInput>
}
export type SendEmailInput = {
  to?: string
  user_id?: string
  template_key?: string
  variables?: Record<string, unknown>
  subject?: string
  html?: string
  text?: string
  from?: string
  reply_to?: string
  headers?: Record<string, unknown>
  send_at?: string
  category?: string
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
  event_name: string
  properties?: Record<string, unknown>
  occurred_at?: string
  id?: string
  session_id?: string
  app_user_id?: string
  historical?: boolean
} | {
  events: Array<{
    event_name: string
    properties?: Record<string, unknown>
    occurred_at?: string
    id?: string
    session_id?: string
    app_user_id?: string
  }>
  include_effects?: boolean
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
  user_id?: string
  friend_code?: string
}
export type SendMessageInput = {
  body: string
  message_type?: string
  metadata?: Record<string, unknown>
  attachments?: Array<{
    url: string
    content_type?: string
    size_bytes?: number
    metadata?: Record<string, unknown>
  }>
  parent_message_id?: string | null
}
export type SendPushInput = {
  user_ids: Array<string>
  message: CreatePushAutomationInputMessage
  inbox?: boolean
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
  budget_usd: number | null
  budget_period?: "daily" | "monthly" | "total"
}
export type SetCatalogItemContentsInput = {
  bundle_contents: Array<{
    content_item_key: string
    quantity: number
  }>
}
export type SetCatalogItemPricesInput = {
  prices: Array<{
    currency_code: string
    price: number
  }>
}
export type SetEmailPreferencesInput = {
  categories?: Record<string, unknown>
  unsubscribed_all?: boolean
}
export type SetEventDefinitionInput = {
  description?: string | null
  status?: "active" | "blocked" | "deprecated"
  schema?: (Record<string, unknown> | boolean) | null
  sample_rate?: number
}
export type SetFeedSettingsInput = {
  events: Array<string>
}
export type SetModerationTrustInput = {
  app_user_id: string
  trust_level?: "new" | "trusted" | "moderator"
  auto_approve?: boolean
}
export type SetMonetizationDefinitionsInput = {
  monetization: {
    entitlements?: Array<{
      key: string
      display_name?: string | null
      description?: string | null
      product_keys?: Array<string>
    }>
    products?: Array<{
      key: string
      store: string
      store_identifier: string
      type?: "subscription" | "one_time" | "consumable" | "non_consumable" | "non_renewing_subscription" | null
      display_name?: string | null
      store_metadata?: Record<string, unknown>
    }>
    offerings?: Array<{
      key: string
      display_name?: string | null
      is_current?: boolean
      packages?: Array<{
        offering_key?: string
        key: string
        product_key?: string | null
        position?: number | null
      }>
    }>
    paywalls?: Array<{
      key: string
      offering_key: string
      template?: string | null
      display?: Record<string, unknown>
    }>
  }
}
export type SetPasswordInput = {
  password: string
  current_password?: string
}
export type SetPushPreferencesInput = {
  enabled?: boolean
  categories?: Record<string, boolean>
  quiet_hours?: SetPushPreferencesInputQuietHour
  timezone?: string | null
}
export type SetPushPreferencesInputQuietHour = {
  start: string
  end: string
} | null
export type SetRealtimeRoomsInput = {
  rules: Array<{
    pattern: string
    publish: string
    presence?: boolean
  }>
}
export type SetSpendCeilingInput = {
  amount_usd: number | null
}
export type SetXpLevelsInput = {
  levels?: Array<{
    level: number
    xp_required: number
    name?: string | null
    icon_url?: string | null
    reward?: Record<string, unknown> | null
  }>
  generate?: {
    count: number
    base: number
    exponent: number
  }
}
export type SignInAnonymouslyInput = {
  anonymous_id?: string
}
export type SignInDeveloperInput = {
  email: string
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
  email: string
  code: string
}
export type SignInWithEmailCodeInput = {
  email: string
  code: string
}
export type SignInWithMagicLinkInput = {
  token: string
}
export type SignInWithPhoneCodeInput = {
  phone: string
  code: string
}
export type SignInWithProviderInput = {
  provider: "apple" | "google"
  id_token: string
  nonce?: string
  name?: string
}
export type SignOutDeveloperInput = {
  refresh_token: string
}
export type SignOutInput = {
  refresh_token: string
  all?: boolean
}
export type SignUpDeveloperInput = {
  email: string
  password: string
  name?: string
  invite_code?: string
}
export type SignUpWithPasswordInput = {
  email: string
  password: string
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
  definition?: UpdateStreakDefinitionInput
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
export type SpendCeiling = {
  spend_ceiling_usd: number | null
}
export type SpendCeilingReply = {
  data: SpendCeiling
}
export type SpendCurrencyInput = {
  amount: number
  reason: string
  metadata?: Record<string, unknown>
}
export type StartAppSessionInput = {
  id?: string
  platform?: string | null
  app_version?: string | null
  os_version?: string | null
  device_model?: string | null
  locale?: string | null
  started_at?: string
}
export type StartAppSessionReply = {
  data: StartAppSessionResult
}
export type StartAppSessionResult = AppSession & ({
  last_seen_at: string
  platform: string | null
  app_version: string | null
  os_version: string | null
  device_model: string | null
  locale: string | null
  end_reason: "client" | "timeout" | "replaced" | null | ((string & {}))
})
export type StartDeviceSignInInput = {
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
export type StreakDefinition = {
  id: string
  key: string
  name: string
  description: string | null
  qualifying_event: string
  event_filter: Record<string, unknown> | null
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
    reward: Record<string, unknown>
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
}
export type StreakUserPage = {
  data: Array<StreakUser>
  total: number
  offset: number
  limit: number
}
export type SubmitLeaderboardScoreInput = {
  /** From -10^18 to 10^18; a string where it has 16 digits or more */
  score: number | string
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
}
export type SubscriptionDetail = Subscription & ({
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
})
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
export type TestEmailCampaignInput = {
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
  is_enabled: boolean
}
export type TransferGroupInput = {
  user_id: string
}
export type TransferInput = {
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
  created_at: string
  updated_at: string
}
export type UnlinkIdentityInput = {
  provider: "email" | "phone" | "password" | "apple" | "google"
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
export type UpdateAchievementDefinitionInput = {
  name?: string
  description?: string | null
  icon_url?: string | null
  xp_reward?: number
  criteria?: Record<string, unknown>
  is_hidden?: boolean
  sort_order?: number
  is_active?: boolean
}
export type UpdateCatalogItemDefinitionInput = {
  name?: string
  description?: string | null
  icon_url?: string | null
  category?: string | null
  tags?: Array<string>
  metadata?: Record<string, unknown>
  max_owned?: number | null
  duration_seconds?: number | null
  use_effect?: Record<string, unknown> | null
  is_active?: boolean
}
export type UpdateChallengeDefinitionInput = {
  name?: string
  description?: string | null
  start_at?: string
  end_at?: string
  goal_type?: "event_count" | "xp_earned" | "streak_maintained"
  goal_value?: number
  event_name?: string | null
  reward_xp?: number
  reward_achievement_id?: string | null
  is_active?: boolean
  reward?: Record<string, unknown> | null
  segment_id?: string | null
  recurrence?: "none" | "daily" | "weekly" | "monthly"
  team_mode?: "none" | "group"
}
export type UpdateCollectionColumnInput = {
  name?: string
  nullable?: boolean
  default?: unknown
  type?: CollectionColumnType
  max_length?: number | null
  enum?: Array<unknown> | null
  min?: (number | string) | null
  max?: (number | string) | null
  moderated?: boolean
}
export type UpdateCollectionColumnReply = {
  data: CollectionColumn | CreateCollectionResult
}
export type UpdateCollectionInput = {
  description?: string | null
  owner_scope?: "user" | "group"
  read_policy?: string
  write_policy?: string
  sync?: boolean
  realtime?: boolean
}
export type UpdateCollectionReply = {
  data: Collection | CreateCollectionResult
}
export type UpdateConfigKeyInput = {
  value?: unknown
  description?: string | null
  conditions?: Array<{
    segment_id?: string | null
    percentage?: number | null
    value: unknown
  } & Record<string, unknown>>
}
export type UpdateControlPlaneWebhookInput = {
  target_url?: string
  event_types?: Array<"*" | "project.created" | "project.deleted" | "project.provisioned" | "project.provisioning_failed" | "api_key.created" | "api_key.revoked" | "member.joined" | "member.removed" | "deployment.ready" | "deployment.failed" | "quota.warning" | "quota.exceeded" | "webhook.degraded" | "domain.verified" | "audit.event">
  status?: "active" | "disabled"
}
export type UpdateConversationInput = {
  name?: string | null
  muted_until?: string | null
  archived?: boolean
}
export type UpdateCurrencyDefinitionInput = {
  name?: string
  icon_url?: string | null
  initial_grant?: number
  max_balance?: number
  client_spendable?: boolean
  regen?: CreateCurrencyDefinitionInputRegen
  expiry_days?: number | null
  is_active?: boolean
}
export type UpdateDeveloperInput = {
  name?: string | null
  password?: string
  current_password?: string
}
export type UpdateEmailCampaignInput = {
  name?: string
  audience?: CreateEmailCampaignInputAudience
  exclude_segment_id?: string | null
  schedule?: CreateEmailCampaignInputSchedule
  throttle_per_minute?: number | null
  quiet_hours?: SetPushPreferencesInputQuietHour
  frequency_cap?: {
    max: number
    hours: number
  } | null
  goal_event?: string | null
  template_key?: string
  variables?: Record<string, unknown> | null
  from?: string | null
  reply_to?: string | null
  track?: boolean
  variants?: Array<{
    key: string
    weight: number
    template_key: string
  }>
  send_at?: string | null
}
export type UpdateEmailTemplateInput = {
  name?: string
  subject?: string
  html?: string | null
  text?: string | null
  locales?: Record<string, unknown>
  category?: string
}
export type UpdateFlagInput = {
  name?: string
  description?: string | null
  is_enabled?: boolean
  off_value?: unknown
  default_value?: unknown
  rules?: Array<unknown>
  schedule?: Array<unknown>
  tags?: Array<unknown>
  owner?: string | null
}
export type UpdateFriendInput = {
  metadata?: Record<string, unknown>
}
export type UpdateGroupInput = {
  name?: string
  description?: string | null
  avatar_url?: string | null
  is_public?: boolean
  max_members?: number
  metadata?: Record<string, unknown>
}
export type UpdateGroupMemberInput = {
  role?: "owner" | "admin" | "member" | "viewer"
  metadata?: Record<string, unknown>
}
export type UpdateIntegrationInput = {
  is_active?: boolean
}
export type UpdateInventoryItemInput = {
  metadata?: {
    user?: Record<string, unknown>
  }
}
export type UpdateLeaderboardDefinitionInput = {
  name?: string
  description?: string | null
  source?: {
    type: "manual"
  } | ({
    type: "event"
    event_name: string
    value_property?: string | null
    filter?: Record<string, unknown> | null
  }) | {
    type: "xp"
  } | {
    type: "currency"
    currency_code: string
  } | {
    type: "streak"
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
    from_rank: number
    to_rank: number
    reward: Record<string, unknown>
  }>
  keep_runs?: number
  is_active?: boolean
}
export type UpdateMeInput = {
  display_name?: string
  avatar_url?: string | null
  properties?: Record<string, unknown>
  timezone?: string
}
export type UpdateMediaCatalogDefinitionInput = {
  name?: string
  is_public?: boolean
  asset_ids?: Array<string>
}
export type UpdateMediaInput = {
  alt_text?: string | null
  metadata?: Record<string, unknown>
  folder_id?: string | null
}
export type UpdateMessageInput = {
  body?: string
  metadata?: Record<string, unknown>
}
export type UpdateModerationRuleInput = {
  name?: string
  rule_type?: "keyword" | "regex" | "report_threshold" | "rate" | "link" | "new_account"
  config?: Record<string, unknown>
  is_active?: boolean
}
export type UpdateOnboardingFlowInput = {
  name?: string
  steps?: Array<{
    id?: string | null
    type?: "info" | "question" | "permission" | "action" | "paywall" | "input" | "custom"
    title?: string | null
    description?: string | null
    config?: Record<string, unknown>
    skippable?: boolean
    segment_id?: string | null
  } & Record<string, unknown>>
  is_active?: boolean
}
export type UpdateOrganizationInput = {
  name?: string
}
export type UpdateOrganizationMemberInput = {
  role?: "viewer" | "developer" | "admin" | "owner"
}
export type UpdateProjectInput = {
  name?: string
  bundle_id?: string | null
  google_oauth_client_id?: string | null
  platform?: "ios" | "android" | "all"
  environment?: "development" | "production"
  default_from_email?: string | null
  default_from_name?: string | null
  default_reply_to?: string | null
  magic_link_redirect_url?: string | null
  auth_email_brand_name?: string | null
  user_search_enabled?: boolean
  graphql_enabled?: boolean
  rest_enabled?: boolean
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
  trigger?: CreatePushAutomationInputTrigger
  delay_seconds?: number
  cancel_if_event?: string | null
  message?: CreatePushAutomationInputMessage
  template_key?: string
  frequency_cap?: {
    max: number
    hours: number
  } | null
  quiet_hours?: SetPushPreferencesInputQuietHour
  inbox?: boolean
  is_active?: boolean
}
export type UpdatePushCampaignInput = {
  name?: string
  audience?: CreateEmailCampaignInputAudience
  exclude_segment_id?: string | null
  schedule?: CreateEmailCampaignInputSchedule
  throttle_per_minute?: number | null
  quiet_hours?: SetPushPreferencesInputQuietHour
  frequency_cap?: {
    max: number
    hours: number
  } | null
  goal_event?: string | null
  message?: CreatePushAutomationInputMessage
  variants?: Array<{
    key: string
    weight: number
    message: CreatePushAutomationInputMessage
  }>
  inbox?: boolean
  send_at?: string | null
}
export type UpdatePushTemplateInput = {
  name?: string | null
  message?: CreatePushAutomationInputMessage
}
export type UpdateReferralCodeInput = {
  reward_referrer?: Record<string, unknown>
  reward_referee?: Record<string, unknown>
  max_uses?: number | null
  is_active?: boolean
}
export type UpdateReferralDefaultsInput = {
  reward_referrer?: Record<string, unknown>
  reward_referee?: Record<string, unknown>
  max_uses?: number | null
  qualify_event?: string | null
  qualify_within_days?: number | null
  share_url?: string | null
}
export type UpdateRoleInput = {
  name?: string
  description?: string | null
  permissions?: Array<string>
  is_default?: boolean
}
export type UpdateSegmentInput = {
  name?: string
  description?: string | null
  rules?: Record<string, unknown> | null
  is_active?: boolean
}
export type UpdateServiceAccountInput = {
  name?: string
  scopes?: Array<string>
  project_ids?: Array<string> | null
  is_active?: boolean
}
export type UpdateStreakDefinitionInput = {
  name?: string
  description?: string | null
  qualifying_event?: string
  event_filter?: Record<string, unknown> | null
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
    count: number
    reward: Record<string, unknown>
  }>
  allow_client_qualify?: boolean
  is_active?: boolean
}
export type UpdateUserInput = {
  display_name?: string
  avatar_url?: string | null
  external_id?: string | null
  email?: string | null
  phone?: string | null
  timezone?: string | null
  properties?: Record<string, unknown>
  is_banned?: boolean
  muted_until?: string | null
}
export type UpdateWebhookInput = {
  event_name?: string
  target_url?: string
  status?: "active" | "disabled"
  description?: string | null
  filter?: Record<string, unknown> | null
}
export type UpdateXpBoostInput = {
  name?: string
  multiplier?: number
  starts_at?: string
  ends_at?: string | null
  segment_id?: string | null
  rule_keys?: Array<string> | null
  is_active?: boolean
}
export type UpdateXpRuleInput = {
  name?: string
  event_name?: string
  event_filter?: Record<string, unknown> | null
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
}
export type UploadMediaInput = {
  filename: string
  mime_type: string
  size_bytes?: number
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
  event_filter: Record<string, unknown> | null
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
