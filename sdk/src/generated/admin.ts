// Made from docs/schema/openapi-released.json.gz by `npm run docs`.
import type { Nothing, Operation, RawBody, RawReply } from '../operation.ts'
import type * as S from './schemas.ts'

/** A picture or a link of a message with `track`: notes the opening or the click */
export const trackEmail = 'GET /e/{token}' as Operation<{ path: { token: string } }, RawReply>
/** Health of the service, its failing parts, and the projects that have lost their database */
export const getHealth = 'GET /health' as Operation<Nothing, S.HealthReply>
/** Whether a reverse proxy may obtain a certificate for a name */
export const checkTlsDomain = 'GET /internal/tls-ask' as Operation<{ query: { domain: string } }, S.CheckTlsDomainReply>
/** This OpenAPI document */
export const getUnversionedOpenApi = 'GET /openapi.json' as Operation<{ header?: { "If-None-Match"?: string } }, S.GetUnversionedOpenApiReply>
/** The page of a link to unsubscribe, which asks and changes nothing */
export const showUnsubscribePage = 'GET /u/{token}' as Operation<{ path: { token: string } }, RawReply>
/** Unsubscribe the address of a link from its category */
export const unsubscribe = 'POST /u/{token}' as Operation<{ path: { token: string }; body: RawBody }, RawReply>
/** Webhooks of the organizations that the developer administrates, or of one, newest first */
export const listControlPlaneWebhooks = 'GET /v1/admin/control-plane-webhooks' as Operation<{ query?: { limit?: number; offset?: number; organization_id?: string } }, S.ControlPlaneWebhookPage>
/** Watch an organization, as its admin, with signed deliveries; the secret is shown once */
export const createControlPlaneWebhook = 'POST /v1/admin/control-plane-webhooks' as Operation<{ body: S.CreateControlPlaneWebhookInput }, S.CreateControlPlaneWebhookReply>
/** Send a failed delivery again: same payload, same idempotency key */
export const replayControlPlaneWebhookDelivery = 'POST /v1/admin/control-plane-webhooks/deliveries/{deliveryId}/replay' as Operation<{ path: { deliveryId: string } }, S.ControlPlaneWebhookDeliveryReply>
/** Delete a webhook with its deliveries */
export const deleteControlPlaneWebhook = 'DELETE /v1/admin/control-plane-webhooks/{webhookId}' as Operation<{ path: { webhookId: string } }, S.RevokeDeveloperSessionReply>
/** A webhook of an organization */
export const getControlPlaneWebhook = 'GET /v1/admin/control-plane-webhooks/{webhookId}' as Operation<{ path: { webhookId: string } }, S.ControlPlaneWebhookReply>
/** Change a webhook, disable it, or activate a degraded one again */
export const updateControlPlaneWebhook = 'PATCH /v1/admin/control-plane-webhooks/{webhookId}' as Operation<{ path: { webhookId: string }; body?: S.UpdateControlPlaneWebhookInput }, S.ControlPlaneWebhookReply>
/** Deliveries of a webhook, newest first, with their attempt logs */
export const listControlPlaneWebhookDeliveries = 'GET /v1/admin/control-plane-webhooks/{webhookId}/deliveries' as Operation<{ path: { webhookId: string }; query?: { limit?: number; cursor?: string; status?: "pending" | "delivered" | "failed" | "dlq"; since?: string } }, S.ControlPlaneWebhookDeliveryCursorPage>
/** Rotate the signing secret, for deliveries that are queued from now on; shown once */
export const rotateControlPlaneWebhookSecret = 'POST /v1/admin/control-plane-webhooks/{webhookId}/rotate-secret' as Operation<{ path: { webhookId: string } }, S.RotateWebhookSecretReply>
/** Send a synthetic webhook.test now, and return the receiver's response */
export const testControlPlaneWebhook = 'POST /v1/admin/control-plane-webhooks/{webhookId}/test' as Operation<{ path: { webhookId: string } }, S.TestWebhookReply>
/** Accept an invite with the token of the mail, as the developer with the invited address */
export const acceptInvites = 'POST /v1/admin/invites/accept' as Operation<{ body: S.AcceptInvitesInput }, S.AcceptInvitesReply>
/** Operator tokens that the caller made, newest first */
export const listOperatorTokens = 'GET /v1/admin/operator-tokens' as Operation<{ query?: { limit?: number; offset?: number } }, S.OperatorTokenPage>
/** Create an operator token for a project, or for all projects of an organization; its text is shown once */
export const createOperatorToken = 'POST /v1/admin/operator-tokens' as Operation<{ body: S.CreateOperatorTokenInput }, S.CreateOperatorTokenReply>
/** What an operator token of the caller may do now; active is false for any other text */
export const introspectOperatorToken = 'POST /v1/admin/operator-tokens/introspect' as Operation<{ body: S.IntrospectOperatorTokenInput }, S.IntrospectOperatorTokenReply>
/** Revoke an operator token */
export const deleteOperatorToken = 'DELETE /v1/admin/operator-tokens/{operatorTokenId}' as Operation<{ path: { operatorTokenId: string } }, S.RevokeDeveloperSessionReply>
/** The developer's organizations, oldest membership first */
export const listOrganizations = 'GET /v1/admin/organizations' as Operation<{ query?: { limit?: number; offset?: number } }, S.OrganizationPage>
/** Create an organization, with the caller as its owner */
export const createOrganization = 'POST /v1/admin/organizations' as Operation<{ body: S.CreateOrganizationInput }, S.OrganizationReply>
/** Delete an organization that has no projects, with its memberships and invites */
export const deleteOrganization = 'DELETE /v1/admin/organizations/{orgId}' as Operation<{ path: { orgId: string } }, S.RevokeDeveloperSessionReply>
/** An organization, with the caller's role */
export const getOrganization = 'GET /v1/admin/organizations/{orgId}' as Operation<{ path: { orgId: string } }, S.OrganizationReply>
/** Rename an organization; its slug stays */
export const updateOrganization = 'PATCH /v1/admin/organizations/{orgId}' as Operation<{ path: { orgId: string }; body?: S.UpdateOrganizationInput }, S.OrganizationReply>
/** Who changed what in an organization: its members, invites and projects, newest first */
export const listOrganizationAuditEvents = 'GET /v1/admin/organizations/{orgId}/audit-events' as Operation<{ path: { orgId: string }; query?: { limit?: number; cursor?: string; since?: string; until?: string; actor_id?: string; action?: string; target_type?: string; target_id?: string } }, S.OrganizationAuditEventCursorPage>
/** Invites of an organization, newest first; kept 90 days after their end */
export const listOrganizationInvites = 'GET /v1/admin/organizations/{orgId}/invites' as Operation<{ path: { orgId: string }; query?: { limit?: number; offset?: number } }, S.OrganizationInvitePage>
/** Invite an address by mail, for seven days */
export const createOrganizationInvite = 'POST /v1/admin/organizations/{orgId}/invites' as Operation<{ path: { orgId: string }; body: S.CreateOrganizationInviteInput }, S.OrganizationInviteReply>
/** Revoke an invite */
export const deleteOrganizationInvite = 'DELETE /v1/admin/organizations/{orgId}/invites/{inviteId}' as Operation<{ path: { orgId: string; inviteId: string } }, S.RevokeDeveloperSessionReply>
/** Members of an organization, longest membership first */
export const listOrganizationMembers = 'GET /v1/admin/organizations/{orgId}/members' as Operation<{ path: { orgId: string }; query?: { limit?: number; offset?: number } }, S.OrganizationMemberPage>
/** Remove a member, or leave; the developer loses access to all projects within 30 seconds */
export const deleteOrganizationMember = 'DELETE /v1/admin/organizations/{orgId}/members/{developerId}' as Operation<{ path: { orgId: string; developerId: string } }, S.RevokeDeveloperSessionReply>
/** Give a member another role; owners are made and lowered by owners */
export const updateOrganizationMember = 'PATCH /v1/admin/organizations/{orgId}/members/{developerId}' as Operation<{ path: { orgId: string; developerId: string }; body?: S.UpdateOrganizationMemberInput }, S.OrganizationMemberReply>
/** Projects of the developer's organizations, or of one of them, newest first */
export const listProjects = 'GET /v1/admin/projects' as Operation<{ query?: { organization_id?: string } }, S.ProjectList>
/** Create a project with a client key and a server key */
export const createProject = 'POST /v1/admin/projects' as Operation<{ body: S.CreateProjectInput }, S.CreateProjectReply>
/** Delete a project: its keys stop at once, its database and files are removed in the background */
export const deleteProject = 'DELETE /v1/admin/projects/{projectId}' as Operation<{ path: { projectId: string } }, S.DeleteProjectReply>
/** A project with its API keys and integrations */
export const getProject = 'GET /v1/admin/projects/{projectId}' as Operation<{ path: { projectId: string } }, S.ProjectDetailReply>
/** Change the given fields of a project */
export const updateProject = 'PATCH /v1/admin/projects/{projectId}' as Operation<{ path: { projectId: string }; body?: S.UpdateProjectInput }, S.UpdateProjectReply>
/** Definitions, by sort_order */
export const listAchievementDefinitions = 'GET /v1/admin/projects/{projectId}/achievements' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.AchievementDefinitionPage>
/** Define an achievement; at most 500 */
export const createAchievementDefinition = 'POST /v1/admin/projects/{projectId}/achievements' as Operation<{ path: { projectId: string }; body: S.CreateAchievementDefinitionInput }, S.AchievementDefinitionReply>
/** Unlocks of each day, of all achievements or of one */
export const getAchievementDaily = 'GET /v1/admin/projects/{projectId}/achievements/daily' as Operation<{ path: { projectId: string }; query?: { from?: string; to?: string; timezone?: string; achievement_id?: string } }, S.AchievementDailyReply>
/** Preview who would unlock under criteria that are not stored yet */
export const dryRunAchievementDraft = 'POST /v1/admin/projects/{projectId}/achievements/dry-run' as Operation<{ path: { projectId: string }; body: S.DryRunAchievementDraftInput }, S.DryRunAchievementDraftReply>
/** Unlocks of all time and of seven days, by achievement */
export const getAchievementStats = 'GET /v1/admin/projects/{projectId}/achievements/stats' as Operation<{ path: { projectId: string } }, S.AchievementStatsReply>
/** Delete a definition with its unlocks */
export const deleteAchievementDefinition = 'DELETE /v1/admin/projects/{projectId}/achievements/{achievementId}' as Operation<{ path: { projectId: string; achievementId: string } }, S.RevokeDeveloperSessionReply>
/** A definition */
export const getAchievementDefinition = 'GET /v1/admin/projects/{projectId}/achievements/{achievementId}' as Operation<{ path: { projectId: string; achievementId: string } }, S.AchievementDefinitionReply>
/** Change a definition; unlocks stay */
export const updateAchievementDefinition = 'PATCH /v1/admin/projects/{projectId}/achievements/{achievementId}' as Operation<{ path: { projectId: string; achievementId: string }; body?: S.UpdateAchievementDefinitionInput }, S.AchievementDefinitionReply>
/** Unlock for everybody who qualifies already */
export const backfillAchievement = 'POST /v1/admin/projects/{projectId}/achievements/{achievementId}/backfill' as Operation<{ path: { projectId: string; achievementId: string }; body?: S.BackfillAchievementInput }, S.CreateCollectionIndexReply>
/** Preview who would unlock under the stored criteria, or under others */
export const dryRunAchievement = 'POST /v1/admin/projects/{projectId}/achievements/{achievementId}/dry-run' as Operation<{ path: { projectId: string; achievementId: string }; body?: S.DryRunAchievementInput }, S.DryRunAchievementDraftReply>
/** Grant an achievement, without its XP */
export const grantAchievement = 'POST /v1/admin/projects/{projectId}/achievements/{achievementId}/grant' as Operation<{ path: { projectId: string; achievementId: string }; body: S.GrantAchievementInput }, S.GrantAchievementReply>
/** Revoke an unlock; XP that it paid stays */
export const revokeAchievement = 'POST /v1/admin/projects/{projectId}/achievements/{achievementId}/revoke' as Operation<{ path: { projectId: string; achievementId: string }; body: S.GrantAchievementInput }, S.RevokeAchievementReply>
/** Users who have an achievement, newest first */
export const listAchievementUsers = 'GET /v1/admin/projects/{projectId}/achievements/{achievementId}/users' as Operation<{ path: { projectId: string; achievementId: string }; query?: { limit?: number; offset?: number } }, S.AchievementUserPage>
/** Embeddings of texts, by OpenAI */
export const createAiEmbeddings = 'POST /v1/admin/projects/{projectId}/ai/embeddings' as Operation<{ path: { projectId: string }; body: S.CreateAiEmbeddingsInput }, S.AiEmbeddingsReply>
/** Calls of providers, newest first; kept for 90 days */
export const listAiInvocations = 'GET /v1/admin/projects/{projectId}/ai/invocations' as Operation<{ path: { projectId: string }; query?: { prompt?: string; user_id?: string; status?: "running" | "succeeded" | "rejected" | "failed" | "cancelled"; include?: "user"; cursor?: string; limit?: number } }, S.AiInvocationCursorPage>
/** Forward a body in the provider's own format */
export const sendAiMessages = 'POST /v1/admin/projects/{projectId}/ai/messages' as Operation<{ path: { projectId: string }; body: S.SendAiMessagesInput }, unknown>
/** Prompts with their full configuration, by name */
export const adminListAiPrompts = 'GET /v1/admin/projects/{projectId}/ai/prompts' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.AiPromptDetailPage>
/** Register a prompt, or its next version; at most 500 */
export const createAiPrompt = 'POST /v1/admin/projects/{projectId}/ai/prompts' as Operation<{ path: { projectId: string }; body: S.CreateAiPromptInput }, S.CreateAiPromptReply>
/** Delete a prompt with its versions, budget and spend */
export const deleteAiPrompt = 'DELETE /v1/admin/projects/{projectId}/ai/prompts/{name}' as Operation<{ path: { projectId: string; name: string } }, S.DeleteAiPromptReply>
/** A prompt with its full configuration */
export const getAiPrompt = 'GET /v1/admin/projects/{projectId}/ai/prompts/{name}' as Operation<{ path: { projectId: string; name: string } }, S.AiPromptDetailReply>
/** The budget of a prompt and what is left of it */
export const getAiPromptBudget = 'GET /v1/admin/projects/{projectId}/ai/prompts/{name}/budget' as Operation<{ path: { projectId: string; name: string } }, S.AiPromptBudgetReply>
/** Set or clear the budget of a prompt */
export const setAiPromptBudget = 'PUT /v1/admin/projects/{projectId}/ai/prompts/{name}/budget' as Operation<{ path: { projectId: string; name: string }; body: S.SetAiPromptBudgetInput }, S.AiPromptBudgetReply>
/** Run cases against a prompt: how many pass, and what they cost */
export const evaluateAiPrompt = 'POST /v1/admin/projects/{projectId}/ai/prompts/{name}/evaluate' as Operation<{ path: { projectId: string; name: string }; body: S.EvaluateAiPromptInput }, S.EvaluateAiPromptReply>
/** Invoke a prompt, also one that apps may not invoke */
export const adminInvokeAiPrompt = 'POST /v1/admin/projects/{projectId}/ai/prompts/{name}/invoke' as Operation<{ path: { projectId: string; name: string }; body?: S.AdminInvokeAiPromptInput }, S.InvokeAiPromptReply | RawReply>
/** Make a former version of a prompt its next one */
export const rollbackAiPrompt = 'POST /v1/admin/projects/{projectId}/ai/prompts/{name}/rollback' as Operation<{ path: { projectId: string; name: string }; body: S.RollbackAiPromptInput }, S.CreateAiPromptReply>
/** What a prompt has cost today, this month or in all (UTC) */
export const getAiPromptSpend = 'GET /v1/admin/projects/{projectId}/ai/prompts/{name}/spend' as Operation<{ path: { projectId: string; name: string }; query?: { period?: "daily" | "monthly" | "total" } }, S.AiPromptSpendReply>
/** Versions of a prompt, newest first; the newest 1000 are kept */
export const listAiPromptVersions = 'GET /v1/admin/projects/{projectId}/ai/prompts/{name}/versions' as Operation<{ path: { projectId: string; name: string }; query?: { limit?: number; offset?: number } }, S.AiPromptVersionPage>
/** The registered providers, without their keys */
export const listAiProviders = 'GET /v1/admin/projects/{projectId}/ai/providers' as Operation<{ path: { projectId: string } }, S.AiProviderList>
/** Register a provider, or replace its key */
export const createAiProvider = 'POST /v1/admin/projects/{projectId}/ai/providers' as Operation<{ path: { projectId: string }; body: S.CreateAiProviderInput }, S.AiProviderReply>
/** Revoke a provider that no prompt uses */
export const deleteAiProvider = 'DELETE /v1/admin/projects/{projectId}/ai/providers/{name}' as Operation<{ path: { projectId: string; name: string } }, S.RevokeDeveloperSessionReply>
/** Create another API key; its text is shown once */
export const createApiKey = 'POST /v1/admin/projects/{projectId}/api-keys' as Operation<{ path: { projectId: string }; body: S.CreateApiKeyInput }, S.ApiKeyReply>
/** Deactivate an API key at once */
export const revokeApiKey = 'DELETE /v1/admin/projects/{projectId}/api-keys/{keyId}' as Operation<{ path: { projectId: string; keyId: string } }, S.RevokeApiKeyReply>
/** Replace an API key; the former one is accepted for a while */
export const rotateApiKey = 'POST /v1/admin/projects/{projectId}/api-keys/{keyId}/rotate' as Operation<{ path: { projectId: string; keyId: string }; body?: S.RotateApiKeyInput }, S.ApiKeyReply>
/** Who changed what in a project, newest first */
export const listAuditEvents = 'GET /v1/admin/projects/{projectId}/audit-events' as Operation<{ path: { projectId: string }; query?: { limit?: number; cursor?: string; since?: string; until?: string; actor_id?: string; action?: string; target_type?: string; target_id?: string } }, S.OrganizationAuditEventCursorPage>
/** The whole trail as a file, newest first */
export const exportAuditEvents = 'GET /v1/admin/projects/{projectId}/audit-events/export' as Operation<{ path: { projectId: string }; query?: { format?: "ndjson" | "csv"; since?: string; until?: string } }, RawReply>
/** Verify that no row of the trail was changed, removed, inserted or cut off, and up to which row it is sealed */
export const verifyAuditEvents = 'GET /v1/admin/projects/{projectId}/audit-events/verify' as Operation<{ path: { projectId: string }; query?: { since?: string; until?: string } }, S.VerifyAuditEventsReply>
/** One change */
export const getAuditEvent = 'GET /v1/admin/projects/{projectId}/audit-events/{eventId}' as Operation<{ path: { projectId: string; eventId: string } }, S.OrganizationAuditEventReply>
/** The tier of a project, what it used this month (UTC), and its subscription */
export const getBilling = 'GET /v1/admin/projects/{projectId}/billing' as Operation<{ path: { projectId: string } }, S.BillingReply>
/** Cancel the subscription at the end of the paid period */
export const cancelSubscription = 'POST /v1/admin/projects/{projectId}/billing/cancel' as Operation<{ path: { projectId: string } }, S.CancelSubscriptionReply>
/** The page on which a person subscribes to a tier */
export const createCheckout = 'POST /v1/admin/projects/{projectId}/billing/checkout' as Operation<{ path: { projectId: string }; body: S.CreateCheckoutInput }, S.CheckoutReply>
/** The page on which a customer sees invoices and changes the subscription */
export const createBillingPortal = 'POST /v1/admin/projects/{projectId}/billing/portal' as Operation<{ path: { projectId: string } }, S.BillingPortalReply>
/** Set the most that calls may cost in a month, or take it away with null */
export const setSpendCeiling = 'PUT /v1/admin/projects/{projectId}/billing/spend-ceiling' as Operation<{ path: { projectId: string }; body: S.SetSpendCeilingInput }, S.SpendCeilingReply>
/** What a project used on each day (UTC) */
export const getUsage = 'GET /v1/admin/projects/{projectId}/billing/usage' as Operation<{ path: { projectId: string }; query?: { from?: string; to?: string; interval?: "day" } }, S.UsageReply>
/** Items, newest first */
export const listCatalogItemDefinitions = 'GET /v1/admin/projects/{projectId}/catalog' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; category?: string; tag?: string; item_type?: "consumable" | "durable" | "bundle" | "currency_pack"; search?: string; include_inactive?: boolean } }, S.CatalogItemPage>
/** Add an item; at most 5,000 */
export const createCatalogItemDefinition = 'POST /v1/admin/projects/{projectId}/catalog' as Operation<{ path: { projectId: string }; body: S.CreateCatalogItemDefinitionInput }, S.CatalogItemReply>
/** Create or update items by key, all or none */
export const importCatalog = 'POST /v1/admin/projects/{projectId}/catalog/import' as Operation<{ path: { projectId: string }; query?: { dry_run?: boolean }; body: S.ImportCatalogInput }, S.ImportCatalogReply>
/** Delete an item that is not in use */
export const deleteCatalogItemDefinition = 'DELETE /v1/admin/projects/{projectId}/catalog/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** An item */
export const getCatalogItemDefinition = 'GET /v1/admin/projects/{projectId}/catalog/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.CatalogItemReply>
/** Change an item */
export const updateCatalogItemDefinition = 'PATCH /v1/admin/projects/{projectId}/catalog/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateCatalogItemDefinitionInput }, S.CatalogItemReply>
/** Replace the contents of a bundle */
export const setCatalogItemContents = 'PUT /v1/admin/projects/{projectId}/catalog/{idOrKey}/contents' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.SetCatalogItemContentsInput }, S.CatalogItemReply>
/** Replace an item's prices */
export const setCatalogItemPrices = 'PUT /v1/admin/projects/{projectId}/catalog/{idOrKey}/prices' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.SetCatalogItemPricesInput }, S.CatalogItemReply>
/** Challenges, those that start last in front */
export const listChallengeDefinitions = 'GET /v1/admin/projects/{projectId}/challenges' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; status?: "active" | "upcoming" | "ended" } }, S.ChallengeDefinitionPage>
/** Define a challenge; at most 100 active or to come */
export const createChallengeDefinition = 'POST /v1/admin/projects/{projectId}/challenges' as Operation<{ path: { projectId: string }; body: S.CreateChallengeDefinitionInput }, S.ChallengeDefinitionReply>
/** Delete a challenge with its participants; rewards stay */
export const deleteChallengeDefinition = 'DELETE /v1/admin/projects/{projectId}/challenges/{challengeId}' as Operation<{ path: { projectId: string; challengeId: string } }, S.RevokeDeveloperSessionReply>
/** A challenge */
export const getChallengeDefinition = 'GET /v1/admin/projects/{projectId}/challenges/{challengeId}' as Operation<{ path: { projectId: string; challengeId: string } }, S.ChallengeDefinitionReply>
/** Change a challenge; changes that affect its count trigger a recount */
export const updateChallengeDefinition = 'PATCH /v1/admin/projects/{projectId}/challenges/{challengeId}' as Operation<{ path: { projectId: string; challengeId: string }; body?: S.UpdateChallengeDefinitionInput }, S.ChallengeDefinitionReply>
/** Users who joined a challenge, and who completed it, on each day */
export const getChallengeDaily = 'GET /v1/admin/projects/{projectId}/challenges/{challengeId}/daily' as Operation<{ path: { projectId: string; challengeId: string }; query?: { from?: string; to?: string; timezone?: string } }, S.ChallengeDailyReply>
/** Participants, by progress descending */
export const listChallengeParticipants = 'GET /v1/admin/projects/{projectId}/challenges/{challengeId}/participants' as Operation<{ path: { projectId: string; challengeId: string }; query?: { limit?: number; offset?: number } }, S.ChallengeParticipantPage>
/** Recount a challenge for all users */
export const recomputeChallenge = 'POST /v1/admin/projects/{projectId}/challenges/{challengeId}/recompute' as Operation<{ path: { projectId: string; challengeId: string } }, S.CreateCollectionIndexReply>
/** Simulate a challenge in the preceding window of the same length */
export const simulateChallenge = 'POST /v1/admin/projects/{projectId}/challenges/{challengeId}/simulate' as Operation<{ path: { projectId: string; challengeId: string } }, S.SimulateChallengeReply>
/** The project's collections, newest first */
export const listCollections = 'GET /v1/admin/projects/{projectId}/collections' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.CollectionPage>
/** Create a collection: a table with its columns, indexes and policies */
export const createCollection = 'POST /v1/admin/projects/{projectId}/collections' as Operation<{ path: { projectId: string }; query?: { dry_run?: boolean }; body: S.CreateCollectionInput }, S.CreateCollectionReply | S.CollectionReply>
/** Drop a collection with its rows; `confirm` repeats its name */
export const deleteCollection = 'DELETE /v1/admin/projects/{projectId}/collections/{name}' as Operation<{ path: { projectId: string; name: string }; query?: { dry_run?: boolean; confirm?: string } }, S.DeleteCollectionReply>
/** A collection's definition */
export const getCollection = 'GET /v1/admin/projects/{projectId}/collections/{name}' as Operation<{ path: { projectId: string; name: string } }, S.CollectionReply>
/** Change the description, the policies, sync or realtime of a collection */
export const updateCollection = 'PATCH /v1/admin/projects/{projectId}/collections/{name}' as Operation<{ path: { projectId: string; name: string }; query?: { dry_run?: boolean }; body?: S.UpdateCollectionInput }, S.UpdateCollectionReply>
/** Counts, sums, averages and extremes of the rows of all users */
export const adminAggregateRows = 'POST /v1/admin/projects/{projectId}/collections/{name}/aggregate' as Operation<{ path: { projectId: string; name: string }; header?: { "X-Group-Context"?: string }; body: S.AggregateRowsInput }, S.RunTransactionReply>
/** Add a column; existing rows get its default */
export const createCollectionColumn = 'POST /v1/admin/projects/{projectId}/collections/{name}/columns' as Operation<{ path: { projectId: string; name: string }; query?: { dry_run?: boolean }; body: S.CreateCollectionColumnInput }, S.CreateCollectionReply | S.CollectionColumnReply>
/** Drop a column with its values; `confirm` repeats its name */
export const deleteCollectionColumn = 'DELETE /v1/admin/projects/{projectId}/collections/{name}/columns/{column}' as Operation<{ path: { projectId: string; name: string; column: string }; query?: { dry_run?: boolean; confirm?: string } }, S.DeleteCollectionReply>
/** Rename a column or change its type, default or bounds, in place and without loss */
export const updateCollectionColumn = 'PATCH /v1/admin/projects/{projectId}/collections/{name}/columns/{column}' as Operation<{ path: { projectId: string; name: string; column: string }; query?: { dry_run?: boolean }; body?: S.UpdateCollectionColumnInput }, S.UpdateCollectionColumnReply>
/** How Postgres would find rows: its plan, and what it reads by which index */
export const explainRows = 'POST /v1/admin/projects/{projectId}/collections/{name}/explain' as Operation<{ path: { projectId: string; name: string }; header?: { "X-Group-Context"?: string }; body?: S.ExplainRowsInput }, S.ExplainRowsReply>
/** All rows of a collection, as a stream */
export const exportCollection = 'GET /v1/admin/projects/{projectId}/collections/{name}/export' as Operation<{ path: { projectId: string; name: string }; query?: { format?: "csv" | "ndjson"; include_deleted?: boolean } }, RawReply>
/** Find rows of all users */
export const adminFindRows = 'POST /v1/admin/projects/{projectId}/collections/{name}/find' as Operation<{ path: { projectId: string; name: string }; header?: { "X-Group-Context"?: string }; body?: S.FindRowsInput }, S.ListRowsReply>
/** The rows of all users nearest to a vector, or to a text */
export const adminFindNearestRows = 'POST /v1/admin/projects/{projectId}/collections/{name}/find-nearest' as Operation<{ path: { projectId: string; name: string }; header?: { "X-Group-Context"?: string }; body: S.FindNearestRowsInput }, S.FindNearestRowsList>
/** Insert the rows of a file */
export const importCollection = 'POST /v1/admin/projects/{projectId}/collections/{name}/import' as Operation<{ path: { projectId: string; name: string }; query?: { format?: "csv" | "ndjson" }; body: RawBody }, S.CreateCollectionIndexReply>
/** Add an index */
export const createCollectionIndex = 'POST /v1/admin/projects/{projectId}/collections/{name}/indexes' as Operation<{ path: { projectId: string; name: string }; query?: { dry_run?: boolean }; body: S.CreateCollectionIndexInput }, S.CreateCollectionReply | S.CollectionIndexReply | S.CreateCollectionIndexReply>
/** Drop an index */
export const deleteCollectionIndex = 'DELETE /v1/admin/projects/{projectId}/collections/{name}/indexes/{index}' as Operation<{ path: { projectId: string; name: string; index: string }; query?: { dry_run?: boolean } }, S.DeleteCollectionReply>
/** Insert a row of a user or a group */
export const adminCreateRow = 'POST /v1/admin/projects/{projectId}/collections/{name}/rows' as Operation<{ path: { projectId: string; name: string }; query?: { on_conflict?: "error" | "ignore" | "update"; conflict_target?: string }; header?: { "X-Group-Context"?: string; "Idempotency-Key"?: string }; body?: Record<string, unknown> }, S.RowReply>
/** Insert up to 500 rows, all or none */
export const adminCreateRows = 'POST /v1/admin/projects/{projectId}/collections/{name}/rows/batch' as Operation<{ path: { projectId: string; name: string }; header?: { "X-Group-Context"?: string }; body: S.CreateRowsInput }, S.RowList>
/** Delete a row; with `hard=true` permanently */
export const adminDeleteRow = 'DELETE /v1/admin/projects/{projectId}/collections/{name}/rows/{id}' as Operation<{ path: { projectId: string; name: string; id: string }; query?: { hard?: boolean }; header?: { "X-Group-Context"?: string; "If-Match"?: string } }, S.DeleteRowReply>
/** One row */
export const adminGetRow = 'GET /v1/admin/projects/{projectId}/collections/{name}/rows/{id}' as Operation<{ path: { projectId: string; name: string; id: string }; header?: { "X-Group-Context"?: string; "If-None-Match"?: string } }, S.RowReply>
/** Change a row */
export const adminUpdateRow = 'PATCH /v1/admin/projects/{projectId}/collections/{name}/rows/{id}' as Operation<{ path: { projectId: string; name: string; id: string }; header?: { "X-Group-Context"?: string; "If-Match"?: string }; body?: Record<string, unknown> }, S.RowReply>
/** All keys, ordered by key */
export const listConfigKeys = 'GET /v1/admin/projects/{projectId}/config' as Operation<{ path: { projectId: string } }, S.ConfigKeyList>
/** Create or replace a key */
export const createConfigKey = 'POST /v1/admin/projects/{projectId}/config' as Operation<{ path: { projectId: string }; body: S.CreateConfigKeyInput }, S.ConfigKeyReply>
/** Delete a key for good */
export const deleteConfigKey = 'DELETE /v1/admin/projects/{projectId}/config/{key}' as Operation<{ path: { projectId: string; key: string } }, S.RevokeDeveloperSessionReply>
/** Change the given fields of a key */
export const updateConfigKey = 'PATCH /v1/admin/projects/{projectId}/config/{key}' as Operation<{ path: { projectId: string; key: string }; body?: S.UpdateConfigKeyInput }, S.ConfigKeyReply>
/** Entries with the newest save of each language */
export const adminListContent = 'GET /v1/admin/projects/{projectId}/content' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; content_type?: string; tag?: string; status?: "draft" | "published" | "scheduled"; locale?: string; search?: string } }, S.CreateContentPage>
/** Add an entry; at most 10,000 */
export const createContent = 'POST /v1/admin/projects/{projectId}/content' as Operation<{ path: { projectId: string }; body: S.CreateContentInput }, S.CreateContentReply>
/** Content types that have a schema, by name */
export const listContentTypes = 'GET /v1/admin/projects/{projectId}/content-types' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.ContentTypePage>
/** The schema of a content type */
export const getContentType = 'GET /v1/admin/projects/{projectId}/content-types/{type}' as Operation<{ path: { projectId: string; type: string } }, S.ContentTypeReply>
/** Set the schema of a content type */
export const setContentType = 'PUT /v1/admin/projects/{projectId}/content-types/{type}' as Operation<{ path: { projectId: string; type: string }; body: S.SetContentTypeInput }, S.ContentTypeReply>
/** Delete an entry with its languages and versions */
export const deleteContent = 'DELETE /v1/admin/projects/{projectId}/content/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** An entry with the newest save of each language */
export const adminGetContent = 'GET /v1/admin/projects/{projectId}/content/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.CreateContentReply>
/** Change the given properties of an entry */
export const updateContent = 'PATCH /v1/admin/projects/{projectId}/content/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateContentInput }, S.CreateContentReply>
/** Save a language of an entry as a new version */
export const setContentLocale = 'PUT /v1/admin/projects/{projectId}/content/{idOrKey}/locales/{locale}' as Operation<{ path: { projectId: string; idOrKey: string; locale: string }; body: S.SetContentLocaleInput }, S.ContentVersionReply>
/** Publish a language, at once or at a time */
export const publishContent = 'POST /v1/admin/projects/{projectId}/content/{idOrKey}/locales/{locale}/publish' as Operation<{ path: { projectId: string; idOrKey: string; locale: string }; body?: S.PublishContentInput }, S.CreateContentReply>
/** Cancel the schedule of a language, or withdraw it */
export const unpublishContent = 'POST /v1/admin/projects/{projectId}/content/{idOrKey}/locales/{locale}/unpublish' as Operation<{ path: { projectId: string; idOrKey: string; locale: string } }, S.CreateContentReply>
/** A token that shows the newest versions of an entry for an hour */
export const previewContentToken = 'POST /v1/admin/projects/{projectId}/content/{idOrKey}/preview-token' as Operation<{ path: { projectId: string; idOrKey: string } }, S.PreviewContentTokenReply>
/** Save the fields of a former version as the newest one */
export const rollbackContent = 'POST /v1/admin/projects/{projectId}/content/{idOrKey}/rollback' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.RollbackContentInput }, S.CreateContentReply>
/** The versions of a language, newest first */
export const listContentVersions = 'GET /v1/admin/projects/{projectId}/content/{idOrKey}/versions' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { limit?: number; offset?: number; locale?: string } }, S.ContentVersionPage>
/** Currencies, newest first */
export const listCurrencyDefinitions = 'GET /v1/admin/projects/{projectId}/currencies' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.CurrencyDefinitionPage>
/** Define a currency; at most 100 */
export const createCurrencyDefinition = 'POST /v1/admin/projects/{projectId}/currencies' as Operation<{ path: { projectId: string }; body: S.CreateCurrencyDefinitionInput }, S.CurrencyDefinitionReply>
/** The newest check that every balance is the sum of its ledger */
export const getCurrencyIntegrity = 'GET /v1/admin/projects/{projectId}/currencies/integrity' as Operation<{ path: { projectId: string } }, S.GetCurrencyIntegrityReply>
/** The ledger, newest first */
export const adminListCurrencyTransactions = 'GET /v1/admin/projects/{projectId}/currencies/transactions' as Operation<{ path: { projectId: string }; query?: { user_id?: string; currency_code?: string; reason?: string; include?: "user"; cursor?: string; limit?: number } }, S.AdminCurrencyTransactionCursorPage>
/** Change a user's balances, all or none */
export const createCurrencyTransaction = 'POST /v1/admin/projects/{projectId}/currencies/transactions' as Operation<{ path: { projectId: string }; body: S.CreateCurrencyTransactionInput }, S.CreateCurrencyTransactionReply>
/** Reverse a transaction by another one, once */
export const reverseCurrencyTransaction = 'POST /v1/admin/projects/{projectId}/currencies/transactions/{transactionId}/reverse' as Operation<{ path: { projectId: string; transactionId: string } }, S.CreditCurrencyReply>
/** Delete a currency that nobody ever had */
export const deleteCurrencyDefinition = 'DELETE /v1/admin/projects/{projectId}/currencies/{code}' as Operation<{ path: { projectId: string; code: string } }, S.RevokeDeveloperSessionReply>
/** A currency */
export const getCurrencyDefinition = 'GET /v1/admin/projects/{projectId}/currencies/{code}' as Operation<{ path: { projectId: string; code: string } }, S.CurrencyDefinitionReply>
/** Change a currency */
export const updateCurrencyDefinition = 'PATCH /v1/admin/projects/{projectId}/currencies/{code}' as Operation<{ path: { projectId: string; code: string }; body?: S.UpdateCurrencyDefinitionInput }, S.CurrencyDefinitionReply>
/** What was granted and spent of a currency on each day */
export const getCurrencyDaily = 'GET /v1/admin/projects/{projectId}/currencies/{code}/daily' as Operation<{ path: { projectId: string; code: string }; query?: { from?: string; to?: string; timezone?: string } }, S.CurrencyDailyReply>
/** Minted, burned and circulating, the largest holders, sums by reason */
export const getCurrencyStats = 'GET /v1/admin/projects/{projectId}/currencies/{code}/stats' as Operation<{ path: { projectId: string; code: string } }, S.CurrencyStatsReply>
/** Whether the database, the queue, webhooks, realtime and the storage of a project work */
export const getProjectHealth = 'GET /v1/admin/projects/{projectId}/diagnostics/health' as Operation<{ path: { projectId: string } }, S.ProjectHealthReply>
/** Issues, last seen first */
export const listIssues = 'GET /v1/admin/projects/{projectId}/diagnostics/issues' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; status?: "open" | "resolved" | "ignored"; level?: "debug" | "info" | "warn" | "error" | "fatal"; app_version?: string } }, S.IssuePage>
/** An issue */
export const getIssue = 'GET /v1/admin/projects/{projectId}/diagnostics/issues/{issueId}' as Operation<{ path: { projectId: string; issueId: string } }, S.IssueReply>
/** Resolve, ignore or open an issue */
export const updateIssue = 'PATCH /v1/admin/projects/{projectId}/diagnostics/issues/{issueId}' as Operation<{ path: { projectId: string; issueId: string }; body?: S.UpdateIssueInput }, S.IssueReply>
/** The reports of an issue of the last 30 days, newest first */
export const listReports = 'GET /v1/admin/projects/{projectId}/diagnostics/issues/{issueId}/reports' as Operation<{ path: { projectId: string; issueId: string }; query?: { cursor?: string; limit?: number } }, S.ReportCursorPage>
/** A report, with the frames of its stack */
export const getReport = 'GET /v1/admin/projects/{projectId}/diagnostics/issues/{issueId}/reports/{reportId}' as Operation<{ path: { projectId: string; issueId: string; reportId: string } }, S.ReportDetailReply>
/** Delete the source maps of a release */
export const deleteSourceMaps = 'DELETE /v1/admin/projects/{projectId}/diagnostics/source-maps' as Operation<{ path: { projectId: string }; query: { release: string } }, S.DeleteSourceMapsReply>
/** Source maps, newest upload first */
export const listSourceMaps = 'GET /v1/admin/projects/{projectId}/diagnostics/source-maps' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; release?: string } }, S.SourceMapPage>
/** Upload the source map of a bundle of a release */
export const putSourceMap = 'PUT /v1/admin/projects/{projectId}/diagnostics/source-maps' as Operation<{ path: { projectId: string }; query: { release: string; bundle: string }; body: RawBody }, S.SourceMapReply>
/** Delete a source map */
export const deleteSourceMap = 'DELETE /v1/admin/projects/{projectId}/diagnostics/source-maps/{sourceMapId}' as Operation<{ path: { projectId: string; sourceMapId: string } }, S.RevokeDeveloperSessionReply>
/** The domains of a project, newest first */
export const listDomains = 'GET /v1/admin/projects/{projectId}/domains' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; kind?: "email" | "site" | "function" } }, S.DomainPage>
/** Attach a domain; the answer names the DNS records to write */
export const createDomain = 'POST /v1/admin/projects/{projectId}/domains' as Operation<{ path: { projectId: string }; body: S.CreateDomainInput }, S.DomainReply>
/** Detach a domain */
export const deleteDomain = 'DELETE /v1/admin/projects/{projectId}/domains/{domainId}' as Operation<{ path: { projectId: string; domainId: string } }, S.RevokeDeveloperSessionReply>
/** A domain */
export const getDomain = 'GET /v1/admin/projects/{projectId}/domains/{domainId}' as Operation<{ path: { projectId: string; domainId: string } }, S.DomainReply>
/** Check the DNS records of a domain now, at most once in ten seconds */
export const verifyDomain = 'POST /v1/admin/projects/{projectId}/domains/{domainId}/verify' as Operation<{ path: { projectId: string; domainId: string } }, S.DomainReply>
/** Campaigns, newest first */
export const listEmailCampaigns = 'GET /v1/admin/projects/{projectId}/email/campaigns' as Operation<{ path: { projectId: string }; query?: { status?: "draft" | "scheduled" | "sending" | "paused" | "sent" | "cancelled" | "failed"; limit?: number; offset?: number } }, S.EmailCampaignPage>
/** Make a campaign; at most 100 in 24 hours */
export const createEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns' as Operation<{ path: { projectId: string }; body: S.CreateEmailCampaignInput }, S.EmailCampaignReply | S.CreateEmailCampaignReply>
/** Delete a campaign with its deliveries, except while it is sent */
export const deleteEmailCampaign = 'DELETE /v1/admin/projects/{projectId}/email/campaigns/{campaignId}' as Operation<{ path: { projectId: string; campaignId: string } }, S.RevokeDeveloperSessionReply>
/** A campaign with its counts */
export const getEmailCampaign = 'GET /v1/admin/projects/{projectId}/email/campaigns/{campaignId}' as Operation<{ path: { projectId: string; campaignId: string } }, S.EmailCampaignReply>
/** Change a campaign that is not sent yet */
export const updateEmailCampaign = 'PATCH /v1/admin/projects/{projectId}/email/campaigns/{campaignId}' as Operation<{ path: { projectId: string; campaignId: string }; body?: S.UpdateEmailCampaignInput }, S.EmailCampaignReply>
/** Cancel a campaign: what is not sent yet is skipped */
export const cancelEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/cancel' as Operation<{ path: { projectId: string; campaignId: string } }, S.EmailCampaignReply>
/** What became of the deliveries of a campaign on each day */
export const getEmailCampaignDaily = 'GET /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/daily' as Operation<{ path: { projectId: string; campaignId: string }; query?: { from?: string; to?: string; timezone?: string } }, S.EmailCampaignDailyReply>
/** Deliveries of a campaign in the order of their users */
export const listEmailCampaignDeliveries = 'GET /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/deliveries' as Operation<{ path: { projectId: string; campaignId: string }; query?: { status?: "pending" | "sending" | "sent" | "opened" | "converted" | "skipped" | "failed"; include?: "user"; cursor?: string; limit?: number } }, S.EmailCampaignDeliveryCursorPage>
/** Copy a campaign as a draft */
export const duplicateEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/duplicate' as Operation<{ path: { projectId: string; campaignId: string } }, S.EmailCampaignReply>
/** Pause a campaign that is being sent */
export const pauseEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/pause' as Operation<{ path: { projectId: string; campaignId: string } }, S.EmailCampaignReply>
/** Whom a campaign would reach now, and the message as `user_id` would see it */
export const previewEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/preview' as Operation<{ path: { projectId: string; campaignId: string }; body?: S.PreviewEmailCampaignInput }, S.PreviewEmailCampaignReply>
/** Resume a paused campaign */
export const resumeEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/resume' as Operation<{ path: { projectId: string; campaignId: string } }, S.EmailCampaignReply>
/** Schedule a draft, at `send_at`, else at its own time, else now */
export const scheduleEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/schedule' as Operation<{ path: { projectId: string; campaignId: string }; body?: S.ScheduleEmailCampaignInput }, S.CreateEmailCampaignReply>
/** Counts and rates of a campaign, by variant and by hour; conversions within 24 hours */
export const getEmailCampaignStats = 'GET /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/stats' as Operation<{ path: { projectId: string; campaignId: string } }, S.EmailCampaignStatsReply>
/** Queue the message of a campaign to up to 10 users now, all or none */
export const testEmailCampaign = 'POST /v1/admin/projects/{projectId}/email/campaigns/{campaignId}/test' as Operation<{ path: { projectId: string; campaignId: string }; body: S.TestEmailCampaignInput }, S.TestEmailCampaignReply>
/** Messages of the last 90 days, newest first */
export const listEmailMessages = 'GET /v1/admin/projects/{projectId}/email/messages' as Operation<{ path: { projectId: string }; query?: { cursor?: string; limit?: number; status?: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed" | "cancelled" | "suppressed"; user_id?: string; include?: "user" } }, S.EmailMessageCursorPage>
/** A message with its events */
export const getEmailMessage = 'GET /v1/admin/projects/{projectId}/email/messages/{messageId}' as Operation<{ path: { projectId: string; messageId: string } }, S.EmailMessageDetailReply>
/** Cancel a message while it is queued */
export const cancelEmailMessage = 'POST /v1/admin/projects/{projectId}/email/messages/{messageId}/cancel' as Operation<{ path: { projectId: string; messageId: string } }, S.CancelEmailMessageReply>
/** Queue a message; ten calls a second */
export const sendEmail = 'POST /v1/admin/projects/{projectId}/email/send' as Operation<{ path: { projectId: string }; body: S.SendEmailInput }, S.SendEmailReply>
/** Queue up to 100 messages, all or none */
export const sendEmailBatch = 'POST /v1/admin/projects/{projectId}/email/send-batch' as Operation<{ path: { projectId: string }; body: S.SendEmailBatchInput }, S.SendEmailList>
/** Delete all suppressions of an address */
export const deleteEmailSuppression = 'DELETE /v1/admin/projects/{projectId}/email/suppressions' as Operation<{ path: { projectId: string }; query?: { address?: string }; body?: S.DeleteEmailSuppressionInput }, S.RevokeDeveloperSessionReply>
/** Suppressed addresses, newest first */
export const listEmailSuppressions = 'GET /v1/admin/projects/{projectId}/email/suppressions' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; address?: string; reason?: "bounce" | "complaint" | "unsubscribe" | "manual" } }, S.EmailSuppressionPage>
/** Suppress an address */
export const createEmailSuppression = 'POST /v1/admin/projects/{projectId}/email/suppressions' as Operation<{ path: { projectId: string }; body: S.CreateEmailSuppressionInput }, S.EmailSuppressionReply>
/** Templates of the project, newest first */
export const listEmailTemplates = 'GET /v1/admin/projects/{projectId}/email/templates' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.EmailTemplatePage>
/** Define a template, or replace a built-in one; at most 200 */
export const createEmailTemplate = 'POST /v1/admin/projects/{projectId}/email/templates' as Operation<{ path: { projectId: string }; body: S.CreateEmailTemplateInput }, S.EmailTemplateReply>
/** Delete a template; a built-in one of its key is used again */
export const deleteEmailTemplate = 'DELETE /v1/admin/projects/{projectId}/email/templates/{key}' as Operation<{ path: { projectId: string; key: string } }, S.RevokeDeveloperSessionReply>
/** A template */
export const getEmailTemplate = 'GET /v1/admin/projects/{projectId}/email/templates/{key}' as Operation<{ path: { projectId: string; key: string } }, S.EmailTemplateReply>
/** Change a template; messages that are queued keep the former content */
export const updateEmailTemplate = 'PATCH /v1/admin/projects/{projectId}/email/templates/{key}' as Operation<{ path: { projectId: string; key: string }; body?: S.UpdateEmailTemplateInput }, S.EmailTemplateReply>
/** A template with variables, as a message would have it; built-in ones too */
export const previewEmailTemplate = 'POST /v1/admin/projects/{projectId}/email/templates/{key}/preview' as Operation<{ path: { projectId: string; key: string }; body?: S.PreviewEmailTemplateInput }, S.PreviewEmailTemplateReply>
/** Delete the events of a user, of a name, or both, before a time */
export const deleteEvents = 'DELETE /v1/admin/projects/{projectId}/events' as Operation<{ path: { projectId: string }; query?: { user_id?: string; event_name?: string; before?: string } }, S.CreateCollectionIndexReply>
/** Events of all users, newest first */
export const listEvents = 'GET /v1/admin/projects/{projectId}/events' as Operation<{ path: { projectId: string }; query?: { event_name?: string; user_id?: string; since?: string; until?: string; source?: "client" | "server" | "webhook" | "system"; where?: string; include_system?: boolean; include?: "user"; cursor?: string; limit?: number } }, S.EventCursorPage>
/** Record one event, or a batch, for users */
export const adminSendEvents = 'POST /v1/admin/projects/{projectId}/events' as Operation<{ path: { projectId: string }; body: S.SendEventsInput }, S.SendEventsReply>
/** Events and active users of each day (UTC) on which events occurred */
export const getDailyEvents = 'GET /v1/admin/projects/{projectId}/events/daily' as Operation<{ path: { projectId: string }; query?: { from?: string; to?: string; event_name?: string } }, S.DailyEventsReply>
/** Definitions of events, by name */
export const listEventDefinitions = 'GET /v1/admin/projects/{projectId}/events/definitions' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.EventDefinitionPage>
/** Delete the definition of an event */
export const deleteEventDefinition = 'DELETE /v1/admin/projects/{projectId}/events/definitions/{eventName}' as Operation<{ path: { projectId: string; eventName: string } }, S.RevokeDeveloperSessionReply>
/** The definition of an event */
export const getEventDefinition = 'GET /v1/admin/projects/{projectId}/events/definitions/{eventName}' as Operation<{ path: { projectId: string; eventName: string } }, S.EventDefinitionReply>
/** Define an event: block or deprecate it, set its schema or its sample rate */
export const setEventDefinition = 'PUT /v1/admin/projects/{projectId}/events/definitions/{eventName}' as Operation<{ path: { projectId: string; eventName: string }; body?: S.SetEventDefinitionInput }, S.EventDefinitionReply>
/** The names of events, with counts and property paths */
export const listEventNames = 'GET /v1/admin/projects/{projectId}/events/names' as Operation<{ path: { projectId: string }; query?: { include_system?: boolean; limit?: number; offset?: number } }, S.EventNamePage>
/** Replay stored events to add missing effects */
export const replayEvents = 'POST /v1/admin/projects/{projectId}/events/replay' as Operation<{ path: { projectId: string }; body: S.ReplayEventsInput }, S.CreateCollectionIndexReply>
/** An event, with links to its effects */
export const getEvent = 'GET /v1/admin/projects/{projectId}/events/{eventId}' as Operation<{ path: { projectId: string; eventId: string } }, S.EventDetailReply>
/** Entries of the project, newest first */
export const adminListFeedEntries = 'GET /v1/admin/projects/{projectId}/feeds' as Operation<{ path: { projectId: string }; query?: { user_id?: string; group_id?: string; action?: string; limit?: number; offset?: number } }, S.FeedEntryPage>
/** Post an entry of a user, or of the system, which all users see */
export const adminCreateFeedEntry = 'POST /v1/admin/projects/{projectId}/feeds' as Operation<{ path: { projectId: string }; body: S.AdminCreateFeedEntryInput }, S.FeedEntryReply>
/** Set which system events make entries, by their actions */
export const setFeedSettings = 'PUT /v1/admin/projects/{projectId}/feeds/settings' as Operation<{ path: { projectId: string }; body: S.SetFeedSettingsInput }, S.FeedSettingsReply>
/** Delete an entry of any user or of the system */
export const adminDeleteFeedEntry = 'DELETE /v1/admin/projects/{projectId}/feeds/{entryId}' as Operation<{ path: { projectId: string; entryId: string } }, S.RevokeDeveloperSessionReply>
/** Flags, newest first */
export const listFlags = 'GET /v1/admin/projects/{projectId}/flags' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; stale?: boolean } }, S.FlagPage>
/** Define a flag; at most 500 */
export const createFlag = 'POST /v1/admin/projects/{projectId}/flags' as Operation<{ path: { projectId: string }; body: S.CreateFlagInput }, S.FlagReply>
/** Delete a flag with its overrides, history and counts */
export const deleteFlag = 'DELETE /v1/admin/projects/{projectId}/flags/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A flag */
export const adminGetFlag = 'GET /v1/admin/projects/{projectId}/flags/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.FlagReply>
/** Change the given fields of a flag */
export const updateFlag = 'PATCH /v1/admin/projects/{projectId}/flags/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateFlagInput }, S.FlagReply>
/** The value that a user gets, with every condition of every rule */
export const adminEvaluateFlag = 'POST /v1/admin/projects/{projectId}/flags/{idOrKey}/evaluate' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.AdminEvaluateFlagInput }, S.AdminEvaluateFlagReply>
/** The versions of a flag, newest first, with their changes */
export const listFlagHistory = 'GET /v1/admin/projects/{projectId}/flags/{idOrKey}/history' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { limit?: number; offset?: number } }, S.FlagHistoryPage>
/** Set values for individual users (overrides); at most 1000 */
export const setFlagOverrides = 'PUT /v1/admin/projects/{projectId}/flags/{idOrKey}/overrides' as Operation<{ path: { projectId: string; idOrKey: string }; body?: Record<string, unknown> }, S.GetConfigReply>
/** Raise the percentage of a rule step by step */
export const rampFlag = 'POST /v1/admin/projects/{projectId}/flags/{idOrKey}/ramp' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.RampFlagInput }, S.FlagReply>
/** Restore a former version of a flag as a new version */
export const revertFlag = 'POST /v1/admin/projects/{projectId}/flags/{idOrKey}/revert' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.RevertFlagInput }, S.FlagReply>
/** Evaluations and users of the last days, by value */
export const getFlagStats = 'GET /v1/admin/projects/{projectId}/flags/{idOrKey}/stats' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { days?: number } }, S.FlagStatsReply>
/** Switch a flag on or off */
export const toggleFlag = 'POST /v1/admin/projects/{projectId}/flags/{idOrKey}/toggle' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.ToggleFlagInput }, S.FlagReply>
/** The friends or requests of a user, newest first; without private notes */
export const listFriendships = 'GET /v1/admin/projects/{projectId}/friends' as Operation<{ path: { projectId: string }; query: { user_id: string; status?: "accepted" | "pending_incoming" | "pending_outgoing"; limit?: number; offset?: number } }, S.FriendshipPage>
/** Make two users friends, or send a request from one to the other */
export const createFriendship = 'POST /v1/admin/projects/{projectId}/friends' as Operation<{ path: { projectId: string }; body: S.CreateFriendshipInput }, S.FriendshipReply>
/** End a friendship or a request of two users */
export const deleteFriendship = 'DELETE /v1/admin/projects/{projectId}/friends/{userId}/{friendId}' as Operation<{ path: { projectId: string; userId: string; friendId: string } }, S.RevokeDeveloperSessionReply>
/** Query the project's database with GraphQL; it reads only */
export const createGraphql = 'POST /v1/admin/projects/{projectId}/graphql' as Operation<{ path: { projectId: string }; body: S.CreateGraphqlInput }, S.CreateGraphqlReply>
/** All groups, or those whose name contains a text; newest first */
export const listGroups = 'GET /v1/admin/projects/{projectId}/groups' as Operation<{ path: { projectId: string }; query?: { search?: string; limit?: number; offset?: number } }, S.GroupPage>
/** Delete a group with the rows that it owns */
export const adminDeleteGroup = 'DELETE /v1/admin/projects/{projectId}/groups/{groupId}' as Operation<{ path: { projectId: string; groupId: string } }, S.RevokeDeveloperSessionReply>
/** A group */
export const adminGetGroup = 'GET /v1/admin/projects/{projectId}/groups/{groupId}' as Operation<{ path: { projectId: string; groupId: string } }, S.GroupReply>
/** Change a group */
export const adminUpdateGroup = 'PATCH /v1/admin/projects/{projectId}/groups/{groupId}' as Operation<{ path: { projectId: string; groupId: string }; body?: S.UpdateGroupInput }, S.GroupReply>
/** Members of a group, longest membership first */
export const adminListGroupMembers = 'GET /v1/admin/projects/{projectId}/groups/{groupId}/members' as Operation<{ path: { projectId: string; groupId: string }; query?: { limit?: number; offset?: number } }, S.GroupMemberPage>
/** Add a user to a group, public or private */
export const addGroupMember = 'POST /v1/admin/projects/{projectId}/groups/{groupId}/members' as Operation<{ path: { projectId: string; groupId: string }; body: S.AddGroupMemberInput }, S.GroupMemberReply>
/** Remove a member; after the removal of the owner the oldest admin becomes the owner, else the oldest member */
export const adminRemoveGroupMember = 'DELETE /v1/admin/projects/{projectId}/groups/{groupId}/members/{userId}' as Operation<{ path: { projectId: string; groupId: string; userId: string } }, S.RevokeDeveloperSessionReply>
/** Change the role or the metadata of a member */
export const adminUpdateGroupMember = 'PATCH /v1/admin/projects/{projectId}/groups/{groupId}/members/{userId}' as Operation<{ path: { projectId: string; groupId: string; userId: string }; body?: S.UpdateGroupMemberInput }, S.GroupMemberReply>
/** Connected providers, without their configs */
export const listIntegrations = 'GET /v1/admin/projects/{projectId}/integrations' as Operation<{ path: { projectId: string } }, S.IntegrationList>
/** Connect a provider, or replace its config */
export const createIntegration = 'POST /v1/admin/projects/{projectId}/integrations' as Operation<{ path: { projectId: string }; body: S.CreateIntegrationInput }, S.IntegrationReply>
/** Disconnect a provider and forget its credentials */
export const deleteIntegration = 'DELETE /v1/admin/projects/{projectId}/integrations/{provider}' as Operation<{ path: { projectId: string; provider: string } }, S.RevokeDeveloperSessionReply>
/** A connected provider, without its config */
export const getIntegration = 'GET /v1/admin/projects/{projectId}/integrations/{provider}' as Operation<{ path: { projectId: string; provider: string } }, S.IntegrationReply>
/** Switch a provider on or off */
export const updateIntegration = 'PATCH /v1/admin/projects/{projectId}/integrations/{provider}' as Operation<{ path: { projectId: string; provider: string }; body?: S.UpdateIntegrationInput }, S.IntegrationReply>
/** Received webhooks of a provider, newest first */
export const listIntegrationEvents = 'GET /v1/admin/projects/{projectId}/integrations/{provider}/events' as Operation<{ path: { projectId: string; provider: string }; query?: { cursor?: string; limit?: number; outcome?: string } }, S.IntegrationEventCursorPage>
/** Process a received webhook again */
export const replayIntegrationEvent = 'POST /v1/admin/projects/{projectId}/integrations/{provider}/events/{eventId}/replay' as Operation<{ path: { projectId: string; provider: string; eventId: string } }, S.IntegrationEventReply>
/** Try the credentials of revenuecat, superwall, apns, fcm, google_play or smtp */
export const testIntegration = 'POST /v1/admin/projects/{projectId}/integrations/{provider}/test' as Operation<{ path: { projectId: string; provider: string } }, S.TestIntegrationReply>
/** Stacks of all users, newest first, including empty and expired ones */
export const adminListInventory = 'GET /v1/admin/projects/{projectId}/inventory' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; user_id?: string; item_key?: string; include?: "user" } }, S.AdminInventoryPage>
/** Grant items to a user; bundles are unpacked */
export const adminGrantInventory = 'POST /v1/admin/projects/{projectId}/inventory/grant' as Operation<{ path: { projectId: string }; body: S.AdminGrantInventoryInput }, S.InventoryList>
/** Movements of items, newest first */
export const listInventoryLedger = 'GET /v1/admin/projects/{projectId}/inventory/ledger' as Operation<{ path: { projectId: string }; query?: { user_id?: string; include?: "user"; cursor?: string; limit?: number } }, S.InventoryLedgerCursorPage>
/** Revoke items of a user */
export const revokeInventory = 'POST /v1/admin/projects/{projectId}/inventory/revoke' as Operation<{ path: { projectId: string }; body: S.RevokeInventoryInput }, S.RevokeInventoryReply>
/** Leaderboards, newest first */
export const listLeaderboardDefinitions = 'GET /v1/admin/projects/{projectId}/leaderboards' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.LeaderboardDefinitionPage>
/** Define a leaderboard; at most 100 */
export const createLeaderboardDefinition = 'POST /v1/admin/projects/{projectId}/leaderboards' as Operation<{ path: { projectId: string }; body: S.CreateLeaderboardDefinitionInput }, S.LeaderboardDefinitionReply>
/** Delete a leaderboard with its runs and entries; rewards stay */
export const deleteLeaderboardDefinition = 'DELETE /v1/admin/projects/{projectId}/leaderboards/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A leaderboard */
export const getLeaderboardDefinition = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.LeaderboardDefinitionReply>
/** Change a leaderboard; scoring, sort and period only while there are no entries */
export const updateLeaderboardDefinition = 'PATCH /v1/admin/projects/{projectId}/leaderboards/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateLeaderboardDefinitionInput }, S.LeaderboardDefinitionReply>
/** Entries beyond six robust sigmas, by their score or by one jump */
export const listLeaderboardAnomalies = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/anomalies' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { run?: string; limit?: number; offset?: number } }, S.LeaderboardAnomalyPage>
/** Close the current run before its time; final ranks and rewards follow in the background */
export const closeLeaderboardRun = 'POST /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/close-run' as Operation<{ path: { projectId: string; idOrKey: string } }, S.CloseLeaderboardRunReply>
/** Users who entered a run of a leaderboard on each day */
export const getLeaderboardDaily = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/daily' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { from?: string; to?: string; timezone?: string } }, S.LeaderboardDailyReply>
/** Entries of a run, in their order */
export const listLeaderboardEntries = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { run?: string; limit?: number; offset?: number } }, S.ListLeaderboardEntriesReply>
/** Set the scores of up to 10,000 users in the current run, without events */
export const importLeaderboardEntries = 'POST /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/import' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.ImportLeaderboardEntriesInput }, S.ImportLeaderboardEntriesReply>
/** Take a user's entry out of the current run */
export const deleteLeaderboardEntry = 'DELETE /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}' as Operation<{ path: { projectId: string; idOrKey: string; userId: string } }, S.RevokeDeveloperSessionReply>
/** Set a user's score in the current run, whatever the scoring */
export const setLeaderboardEntry = 'PUT /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; body: S.SubmitLeaderboardScoreInput }, S.LeaderboardEntryReply>
/** Rebuild the current run from the event log */
export const rebuildLeaderboard = 'POST /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/rebuild' as Operation<{ path: { projectId: string; idOrKey: string } }, S.CreateCollectionIndexReply>
/** Runs, newest first */
export const listLeaderboardRuns = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/runs' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { limit?: number; offset?: number } }, S.LeaderboardRunPage>
/** Leagues, newest first */
export const listLeagueDefinitions = 'GET /v1/admin/projects/{projectId}/leagues' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.LeagueDefinitionPage>
/** Define a league; at most 10 */
export const createLeagueDefinition = 'POST /v1/admin/projects/{projectId}/leagues' as Operation<{ path: { projectId: string }; body: S.CreateLeagueDefinitionInput }, S.LeagueDefinitionReply>
/** Delete a league with its runs and results; rewards stay */
export const deleteLeagueDefinition = 'DELETE /v1/admin/projects/{projectId}/leagues/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A league */
export const getLeagueDefinition = 'GET /v1/admin/projects/{projectId}/leagues/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.LeagueDefinitionReply>
/** Change a league; its rules take effect with the next run */
export const updateLeagueDefinition = 'PATCH /v1/admin/projects/{projectId}/leagues/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateLeagueDefinitionInput }, S.LeagueDefinitionReply>
/** Close the open run now; the next one begins at once and ends with the period */
export const closeLeagueRun = 'POST /v1/admin/projects/{projectId}/leagues/{idOrKey}/close-run' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.CloseLeagueRunInput }, S.LeagueRunReply>
/** Runs that have had members or were closed by hand, newest first */
export const listLeagueRuns = 'GET /v1/admin/projects/{projectId}/leagues/{idOrKey}/runs' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { limit?: number; offset?: number } }, S.LeagueRunPage>
/** Cohorts of a run with their members, the lowest tier first */
export const listLeagueRunCohorts = 'GET /v1/admin/projects/{projectId}/leagues/{idOrKey}/runs/{runKey}/cohorts' as Operation<{ path: { projectId: string; idOrKey: string; runKey: string }; query?: { tier_key?: string; limit?: number; offset?: number } }, S.LeagueRunCohortPage>
/** Users, median points and the cut-off of promotion, by tier of the open run */
export const getLeagueStats = 'GET /v1/admin/projects/{projectId}/leagues/{idOrKey}/stats' as Operation<{ path: { projectId: string; idOrKey: string } }, S.LeagueStatsReply>
/** Put a user into a tier */
export const setLeagueUser = 'PUT /v1/admin/projects/{projectId}/leagues/{idOrKey}/users/{userId}' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; body: S.SetLeagueUserInput }, S.LeagueUserReply>
/** Files of the project, newest first */
export const adminListMedia = 'GET /v1/admin/projects/{projectId}/media' as Operation<{ path: { projectId: string }; query?: { status?: "committed" | "pending"; user_id?: string; mime_type?: string; folder_id?: string; search?: string; limit?: number; offset?: number } }, S.MediaPage>
/** The buckets that the project has made, by name */
export const listMediaBuckets = 'GET /v1/admin/projects/{projectId}/media/buckets' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.MediaBucketPage>
/** Make a bucket, for the storage of supabase-js; at most 200 */
export const createMediaBucket = 'POST /v1/admin/projects/{projectId}/media/buckets' as Operation<{ path: { projectId: string }; body: S.CreateMediaBucketInput }, S.MediaBucketReply>
/** Delete an empty bucket */
export const deleteMediaBucket = 'DELETE /v1/admin/projects/{projectId}/media/buckets/{name}' as Operation<{ path: { projectId: string; name: string } }, S.RevokeDeveloperSessionReply>
/** A bucket */
export const getMediaBucket = 'GET /v1/admin/projects/{projectId}/media/buckets/{name}' as Operation<{ path: { projectId: string; name: string } }, S.MediaBucketReply>
/** Change a bucket; files that are there stay */
export const updateMediaBucket = 'PATCH /v1/admin/projects/{projectId}/media/buckets/{name}' as Operation<{ path: { projectId: string; name: string }; body?: S.UpdateMediaBucketInput }, S.MediaBucketReply>
/** Delete the files of a bucket; the bytes are removed in the background */
export const emptyMediaBucket = 'POST /v1/admin/projects/{projectId}/media/buckets/{name}/empty' as Operation<{ path: { projectId: string; name: string } }, S.EmptyMediaBucketReply>
/** Catalogs, newest first */
export const listMediaCatalogDefinitions = 'GET /v1/admin/projects/{projectId}/media/catalogs' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.MediaCatalogDefinitionPage>
/** Make a catalog, an ordered selection of files that apps read without a session; at most 200 */
export const createMediaCatalogDefinition = 'POST /v1/admin/projects/{projectId}/media/catalogs' as Operation<{ path: { projectId: string }; body: S.CreateMediaCatalogDefinitionInput }, S.MediaCatalogDefinitionReply>
/** Delete a catalog; its files stay */
export const deleteMediaCatalogDefinition = 'DELETE /v1/admin/projects/{projectId}/media/catalogs/{slug}' as Operation<{ path: { projectId: string; slug: string } }, S.RevokeDeveloperSessionReply>
/** A catalog */
export const getMediaCatalogDefinition = 'GET /v1/admin/projects/{projectId}/media/catalogs/{slug}' as Operation<{ path: { projectId: string; slug: string } }, S.MediaCatalogDefinitionReply>
/** Change a catalog */
export const updateMediaCatalogDefinition = 'PATCH /v1/admin/projects/{projectId}/media/catalogs/{slug}' as Operation<{ path: { projectId: string; slug: string }; body?: S.UpdateMediaCatalogDefinitionInput }, S.MediaCatalogDefinitionReply>
/** Folders, newest first */
export const listMediaFolders = 'GET /v1/admin/projects/{projectId}/media/folders' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.MediaFolderPage>
/** Make a folder; at most 1,000 */
export const createMediaFolder = 'POST /v1/admin/projects/{projectId}/media/folders' as Operation<{ path: { projectId: string }; body: S.CreateMediaFolderInput }, S.MediaFolderReply>
/** Delete a folder without files */
export const deleteMediaFolder = 'DELETE /v1/admin/projects/{projectId}/media/folders/{folderId}' as Operation<{ path: { projectId: string; folderId: string } }, S.RevokeDeveloperSessionReply>
/** Rename a folder */
export const updateMediaFolder = 'PATCH /v1/admin/projects/{projectId}/media/folders/{folderId}' as Operation<{ path: { projectId: string; folderId: string }; body?: S.UpdateMediaFolderInput }, S.MediaFolderReply>
/** Jobs, newest first; those that are over are kept for 30 days */
export const listMediaJobs = 'GET /v1/admin/projects/{projectId}/media/jobs' as Operation<{ path: { projectId: string }; query?: { asset_id?: string; status?: "queued" | "running" | "succeeded" | "failed"; limit?: number; offset?: number } }, S.MediaJobPage>
/** Queue work on an image; at most 100 a minute */
export const createMediaJob = 'POST /v1/admin/projects/{projectId}/media/jobs' as Operation<{ path: { projectId: string }; body: S.CreateMediaJobInput }, S.CreateMediaJobReply>
/** A job */
export const getMediaJob = 'GET /v1/admin/projects/{projectId}/media/jobs/{jobId}' as Operation<{ path: { projectId: string; jobId: string } }, S.MediaJobReply>
/** Register an upload of the project, which no user owns */
export const adminUploadMedia = 'POST /v1/admin/projects/{projectId}/media/upload' as Operation<{ path: { projectId: string }; body: S.UploadMediaInput }, S.UploadMediaReply>
/** Delete a file: its bytes are gone before the answer */
export const adminDeleteMedia = 'DELETE /v1/admin/projects/{projectId}/media/{assetId}' as Operation<{ path: { projectId: string; assetId: string } }, S.DeleteRowReply>
/** A file */
export const adminGetMedia = 'GET /v1/admin/projects/{projectId}/media/{assetId}' as Operation<{ path: { projectId: string; assetId: string } }, S.MediaReply>
/** Describe a file, or put it into a folder */
export const updateMedia = 'PATCH /v1/admin/projects/{projectId}/media/{assetId}' as Operation<{ path: { projectId: string; assetId: string }; body?: S.UpdateMediaInput }, S.MediaReply>
/** Conversations, newest first; with `user_id` those of a user */
export const adminListConversations = 'GET /v1/admin/projects/{projectId}/messaging/conversations' as Operation<{ path: { projectId: string }; query?: { user_id?: string; limit?: number; offset?: number } }, S.AdminConversationPage>
/** All messages of a conversation, including replies, newest first */
export const adminListMessages = 'GET /v1/admin/projects/{projectId}/messaging/conversations/{conversationId}/messages' as Operation<{ path: { projectId: string; conversationId: string }; query?: { limit?: number; offset?: number } }, S.MessagePage>
/** Post a message as a participant, or as the system */
export const adminSendMessage = 'POST /v1/admin/projects/{projectId}/messaging/conversations/{conversationId}/messages' as Operation<{ path: { projectId: string; conversationId: string }; body: S.AdminSendMessageInput }, S.MessageReply>
/** Delete a message */
export const adminDeleteMessage = 'DELETE /v1/admin/projects/{projectId}/messaging/conversations/{conversationId}/messages/{messageId}' as Operation<{ path: { projectId: string; conversationId: string; messageId: string } }, S.RevokeDeveloperSessionReply>
/** Statistics of conversations, messages and senders */
export const getMessagingStats = 'GET /v1/admin/projects/{projectId}/messaging/stats' as Operation<{ path: { projectId: string } }, S.MessagingStatsReply>
/** Items of the queue with a status, newest first */
export const listModerationQueue = 'GET /v1/admin/projects/{projectId}/moderation/queue' as Operation<{ path: { projectId: string }; query?: { status?: "pending" | "approved" | "rejected" | "escalated"; include?: "user"; limit?: number; offset?: number } }, S.ModerationQueuePage>
/** The content stays; what was hidden is shown again */
export const approveModerationItem = 'POST /v1/admin/projects/{projectId}/moderation/queue/{itemId}/approve' as Operation<{ path: { projectId: string; itemId: string }; body?: S.ApproveModerationItemInput }, S.ModerationQueueReply>
/** Leave a pending item to somebody else */
export const escalateModerationItem = 'POST /v1/admin/projects/{projectId}/moderation/queue/{itemId}/escalate' as Operation<{ path: { projectId: string; itemId: string }; body?: S.ApproveModerationItemInput }, S.ModerationQueueReply>
/** The content is removed; with `action` its author is warned, muted for 24 hours or banned */
export const rejectModerationItem = 'POST /v1/admin/projects/{projectId}/moderation/queue/{itemId}/reject' as Operation<{ path: { projectId: string; itemId: string }; body?: S.RejectModerationItemInput }, S.ModerationQueueReply>
/** Rules, newest first */
export const listModerationRules = 'GET /v1/admin/projects/{projectId}/moderation/rules' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.ModerationRulePage>
/** Define a rule; at most 50 */
export const createModerationRule = 'POST /v1/admin/projects/{projectId}/moderation/rules' as Operation<{ path: { projectId: string }; body: S.CreateModerationRuleInput }, S.ModerationRuleReply>
/** Delete a rule; what it queued stays */
export const deleteModerationRule = 'DELETE /v1/admin/projects/{projectId}/moderation/rules/{ruleId}' as Operation<{ path: { projectId: string; ruleId: string } }, S.RevokeDeveloperSessionReply>
/** Change a rule */
export const updateModerationRule = 'PATCH /v1/admin/projects/{projectId}/moderation/rules/{ruleId}' as Operation<{ path: { projectId: string; ruleId: string }; body?: S.UpdateModerationRuleInput }, S.ModerationRuleReply>
/** How many texts of the last days a rule would have matched */
export const simulateModerationRule = 'POST /v1/admin/projects/{projectId}/moderation/rules/{ruleId}/simulate' as Operation<{ path: { projectId: string; ruleId: string }; body?: S.SimulateModerationRuleInput }, S.SimulateModerationRuleReply>
/** Whether a text matches a rule */
export const testModerationRule = 'POST /v1/admin/projects/{projectId}/moderation/rules/{ruleId}/test' as Operation<{ path: { projectId: string; ruleId: string }; body: S.TestModerationRuleInput }, S.TestModerationRuleReply>
/** Trust levels of users, newest first */
export const listModerationTrust = 'GET /v1/admin/projects/{projectId}/moderation/trust' as Operation<{ path: { projectId: string }; query?: { include?: "user"; limit?: number; offset?: number } }, S.ModerationTrustPage>
/** Set the trust level of a user */
export const setModerationTrust = 'POST /v1/admin/projects/{projectId}/moderation/trust' as Operation<{ path: { projectId: string }; body: S.SetModerationTrustInput }, S.SetModerationTrustReply>
/** Declare live objects as the provider holds them */
export const adoptMonetization = 'POST /v1/admin/projects/{projectId}/monetization/adopt' as Operation<{ path: { projectId: string }; body?: S.AdoptMonetizationInput }, S.AdoptMonetizationReply>
/** Apply a plan, as an operation */
export const applyMonetization = 'POST /v1/admin/projects/{projectId}/monetization/apply' as Operation<{ path: { projectId: string }; body: S.ApplyMonetizationInput }, S.ApplyMonetizationReply>
/** What is declared */
export const getMonetizationDefinitions = 'GET /v1/admin/projects/{projectId}/monetization/definitions' as Operation<{ path: { projectId: string } }, S.MonetizationDefinitionsReply>
/** Declare what the project sells; replaces the whole declaration */
export const setMonetizationDefinitions = 'PUT /v1/admin/projects/{projectId}/monetization/definitions' as Operation<{ path: { projectId: string }; body: S.SetMonetizationDefinitionsInput }, S.MonetizationDefinitionsReply>
/** What changed at the provider since it was applied */
export const getMonetizationDrift = 'GET /v1/admin/projects/{projectId}/monetization/drift' as Operation<{ path: { projectId: string } }, S.MonetizationDriftReply>
/** What the provider holds, in the shape of the definitions */
export const exportMonetization = 'GET /v1/admin/projects/{projectId}/monetization/export' as Operation<{ path: { projectId: string } }, S.MonetizationDefinitionsReply>
/** What an apply would do at the subscription provider */
export const getMonetizationPlan = 'GET /v1/admin/projects/{projectId}/monetization/plan' as Operation<{ path: { projectId: string } }, S.MonetizationPlanReply>
/** Providers of sign-in by redirect by name, without their secrets */
export const listOauthProviders = 'GET /v1/admin/projects/{projectId}/oauth/providers' as Operation<{ path: { projectId: string } }, S.OauthProviderList>
/** Forget a provider and its secret; users keep their identities */
export const deleteOauthProvider = 'DELETE /v1/admin/projects/{projectId}/oauth/providers/{name}' as Operation<{ path: { projectId: string; name: string } }, S.RevokeDeveloperSessionReply>
/** Set a provider: google, apple, github, or an OpenID provider by its issuer */
export const putOauthProvider = 'PUT /v1/admin/projects/{projectId}/oauth/providers/{name}' as Operation<{ path: { projectId: string; name: string }; body: S.PutOauthProviderInput }, S.OauthProviderReply>
/** Try a provider: its discovery, its issuer, and whether it takes the client */
export const testOauthProvider = 'POST /v1/admin/projects/{projectId}/oauth/providers/{name}/test' as Operation<{ path: { projectId: string; name: string } }, S.TestOauthProviderReply>
/** Where a sign-in by redirect may return to */
export const getOauthRedirects = 'GET /v1/admin/projects/{projectId}/oauth/redirects' as Operation<{ path: { projectId: string } }, S.OauthRedirectsReply>
/** Replace the addresses that a sign-in by redirect may return to; at most 50 */
export const putOauthRedirects = 'PUT /v1/admin/projects/{projectId}/oauth/redirects' as Operation<{ path: { projectId: string }; body: S.PutOauthRedirectsInput }, S.OauthRedirectsReply>
/** Flows, newest first */
export const listOnboardingFlows = 'GET /v1/admin/projects/{projectId}/onboarding/flows' as Operation<{ path: { projectId: string } }, S.OnboardingFlowList>
/** Define a flow */
export const createOnboardingFlow = 'POST /v1/admin/projects/{projectId}/onboarding/flows' as Operation<{ path: { projectId: string }; body: S.CreateOnboardingFlowInput }, S.CreateOnboardingFlowReply>
/** Delete a flow with the progress of its users */
export const deleteOnboardingFlow = 'DELETE /v1/admin/projects/{projectId}/onboarding/flows/{flowId}' as Operation<{ path: { projectId: string; flowId: string } }, S.RevokeDeveloperSessionReply>
/** A flow */
export const getOnboardingFlow = 'GET /v1/admin/projects/{projectId}/onboarding/flows/{flowId}' as Operation<{ path: { projectId: string; flowId: string } }, S.CreateOnboardingFlowReply>
/** Change a flow; users who are in it continue with the new steps */
export const updateOnboardingFlow = 'PATCH /v1/admin/projects/{projectId}/onboarding/flows/{flowId}' as Operation<{ path: { projectId: string; flowId: string }; body?: S.UpdateOnboardingFlowInput }, S.CreateOnboardingFlowReply>
/** How many users started, completed and skipped each flow */
export const getOnboardingStats = 'GET /v1/admin/projects/{projectId}/onboarding/stats' as Operation<{ path: { projectId: string } }, S.OnboardingStatsList>
/** Asynchronous operations of a project, newest first; kept 90 days */
export const listOperations = 'GET /v1/admin/projects/{projectId}/operations' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; type?: string; status?: "queued" | "running" | "waiting" | "succeeded" | "failed" | "cancelled" } }, S.OperationPage>
/** The state of an asynchronous operation */
export const getOperation = 'GET /v1/admin/projects/{projectId}/operations/{operationId}' as Operation<{ path: { projectId: string; operationId: string } }, S.OperationReply>
/** Cancel an operation that is queued or waiting */
export const cancelOperation = 'POST /v1/admin/projects/{projectId}/operations/{operationId}/cancel' as Operation<{ path: { projectId: string; operationId: string } }, S.OperationReply>
/** Apply a plan to its target, all or nothing */
export const applyPromotion = 'POST /v1/admin/projects/{projectId}/promotion/apply' as Operation<{ path: { projectId: string }; body: S.ApplyPromotionInput }, S.ApplyPromotionReply>
/** All definitions as one JSON document */
export const exportPromotion = 'GET /v1/admin/projects/{projectId}/promotion/export' as Operation<{ path: { projectId: string } }, S.ExportPromotionReply>
/** Plan or apply a document of definitions to this project */
export const importPromotion = 'POST /v1/admin/projects/{projectId}/promotion/import' as Operation<{ path: { projectId: string }; query?: { dry_run?: "true" | "false" }; body: S.ImportPromotionInput }, S.ImportPromotionReply | S.ApplyPromotionReply>
/** The differences between this project and another of the organization */
export const planPromotion = 'POST /v1/admin/projects/{projectId}/promotion/plan' as Operation<{ path: { projectId: string }; body: S.PlanPromotionInput }, S.ImportPromotionReply>
/** The progress of creating the project's database */
export const getProvisioningStatus = 'GET /v1/admin/projects/{projectId}/provisioning-status' as Operation<{ path: { projectId: string } }, S.ProvisioningStatusReply>
/** Purchases of all users, newest first */
export const adminListPurchases = 'GET /v1/admin/projects/{projectId}/purchases' as Operation<{ path: { projectId: string }; query?: { user_id?: string; store_id?: string; offer_id?: string; status?: "completed" | "refunded"; include?: "user"; cursor?: string; limit?: number } }, S.AdminPurchaseCursorPage>
/** Refund a purchase: the price goes back, what was given is taken */
export const createPurchaseRefund = 'POST /v1/admin/projects/{projectId}/purchases/{purchaseId}/refund' as Operation<{ path: { projectId: string; purchaseId: string }; body?: S.CreatePurchaseRefundInput }, S.PurchaseRefundReply>
/** Automations, newest first */
export const listPushAutomations = 'GET /v1/admin/projects/{projectId}/push/automations' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.PushAutomationPage>
/** Define an automation: an event or a segment that causes a message; at most 100 */
export const createPushAutomation = 'POST /v1/admin/projects/{projectId}/push/automations' as Operation<{ path: { projectId: string }; body: S.CreatePushAutomationInput }, S.PushAutomationReply>
/** Delete an automation with its deliveries */
export const deletePushAutomation = 'DELETE /v1/admin/projects/{projectId}/push/automations/{automationId}' as Operation<{ path: { projectId: string; automationId: string } }, S.RevokeDeveloperSessionReply>
/** An automation */
export const getPushAutomation = 'GET /v1/admin/projects/{projectId}/push/automations/{automationId}' as Operation<{ path: { projectId: string; automationId: string } }, S.PushAutomationReply>
/** Change an automation */
export const updatePushAutomation = 'PATCH /v1/admin/projects/{projectId}/push/automations/{automationId}' as Operation<{ path: { projectId: string; automationId: string }; body?: S.UpdatePushAutomationInput }, S.PushAutomationReply>
/** Counts and rates of an automation */
export const getPushAutomationStats = 'GET /v1/admin/projects/{projectId}/push/automations/{automationId}/stats' as Operation<{ path: { projectId: string; automationId: string } }, S.PushAutomationStatsReply>
/** Campaigns, newest first */
export const listPushCampaigns = 'GET /v1/admin/projects/{projectId}/push/campaigns' as Operation<{ path: { projectId: string }; query?: { status?: "draft" | "scheduled" | "sending" | "paused" | "sent" | "cancelled" | "failed"; limit?: number; offset?: number } }, S.PushCampaignPage>
/** Make a campaign; at most 100 in 24 hours */
export const createPushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns' as Operation<{ path: { projectId: string }; body: S.CreatePushCampaignInput }, S.PushCampaignReply | S.CreateEmailCampaignReply>
/** Delete a campaign with its deliveries, except while it is sent */
export const deletePushCampaign = 'DELETE /v1/admin/projects/{projectId}/push/campaigns/{campaignId}' as Operation<{ path: { projectId: string; campaignId: string } }, S.RevokeDeveloperSessionReply>
/** A campaign with its counts */
export const getPushCampaign = 'GET /v1/admin/projects/{projectId}/push/campaigns/{campaignId}' as Operation<{ path: { projectId: string; campaignId: string } }, S.PushCampaignReply>
/** Change a campaign that is not sent yet */
export const updatePushCampaign = 'PATCH /v1/admin/projects/{projectId}/push/campaigns/{campaignId}' as Operation<{ path: { projectId: string; campaignId: string }; body?: S.UpdatePushCampaignInput }, S.PushCampaignReply>
/** Cancel a campaign: what is not sent yet is skipped */
export const cancelPushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/cancel' as Operation<{ path: { projectId: string; campaignId: string } }, S.PushCampaignReply>
/** What became of the deliveries of a campaign on each day */
export const getPushCampaignDaily = 'GET /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/daily' as Operation<{ path: { projectId: string; campaignId: string }; query?: { from?: string; to?: string; timezone?: string } }, S.EmailCampaignDailyReply>
/** Deliveries of a campaign in the order of their users */
export const listPushCampaignDeliveries = 'GET /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/deliveries' as Operation<{ path: { projectId: string; campaignId: string }; query?: { status?: "pending" | "sending" | "sent" | "opened" | "converted" | "skipped" | "failed"; include?: "user"; cursor?: string; limit?: number } }, S.PushCampaignDeliveryCursorPage>
/** Copy a campaign as a draft */
export const duplicatePushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/duplicate' as Operation<{ path: { projectId: string; campaignId: string } }, S.PushCampaignReply>
/** Pause a campaign that is being sent */
export const pausePushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/pause' as Operation<{ path: { projectId: string; campaignId: string } }, S.PushCampaignReply>
/** Whom a campaign would reach now, and the message as `user_id` would see it */
export const previewPushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/preview' as Operation<{ path: { projectId: string; campaignId: string }; body?: S.PreviewEmailCampaignInput }, S.PreviewPushCampaignReply>
/** Resume a paused campaign */
export const resumePushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/resume' as Operation<{ path: { projectId: string; campaignId: string } }, S.PushCampaignReply>
/** Schedule a draft, at `send_at`, else at its own time, else now */
export const schedulePushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/schedule' as Operation<{ path: { projectId: string; campaignId: string }; body?: S.ScheduleEmailCampaignInput }, S.CreateEmailCampaignReply>
/** Counts and rates of a campaign, by variant and by hour; conversions within 24 hours */
export const getPushCampaignStats = 'GET /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/stats' as Operation<{ path: { projectId: string; campaignId: string } }, S.PushAutomationStatsReply>
/** Send the message of a campaign to up to 10 users now, whatever they have switched off */
export const testPushCampaign = 'POST /v1/admin/projects/{projectId}/push/campaigns/{campaignId}/test' as Operation<{ path: { projectId: string; campaignId: string }; body: S.TestEmailCampaignInput }, S.TestEmailCampaignReply>
/** Deliveries of a user, those that are scheduled too, newest first */
export const listPushDeliveries = 'GET /v1/admin/projects/{projectId}/push/deliveries' as Operation<{ path: { projectId: string }; query: { user_id: string; status?: "pending" | "sending" | "sent" | "opened" | "converted" | "skipped" | "failed"; cursor?: string; limit?: number } }, S.PushDeliveryCursorPage>
/** Send a message to up to 100 users now */
export const sendPush = 'POST /v1/admin/projects/{projectId}/push/send' as Operation<{ path: { projectId: string }; body: S.SendPushInput }, S.TestEmailCampaignReply>
/** Templates, newest first */
export const listPushTemplates = 'GET /v1/admin/projects/{projectId}/push/templates' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.PushTemplatePage>
/** Define a template; at most 200 */
export const createPushTemplate = 'POST /v1/admin/projects/{projectId}/push/templates' as Operation<{ path: { projectId: string }; body: S.CreatePushTemplateInput }, S.PushTemplateReply>
/** Delete a template that no automation names */
export const deletePushTemplate = 'DELETE /v1/admin/projects/{projectId}/push/templates/{key}' as Operation<{ path: { projectId: string; key: string } }, S.RevokeDeveloperSessionReply>
/** A template */
export const getPushTemplate = 'GET /v1/admin/projects/{projectId}/push/templates/{key}' as Operation<{ path: { projectId: string; key: string } }, S.PushTemplateReply>
/** Change a template */
export const updatePushTemplate = 'PATCH /v1/admin/projects/{projectId}/push/templates/{key}' as Operation<{ path: { projectId: string; key: string }; body?: S.UpdatePushTemplateInput }, S.PushTemplateReply>
/** Publish an event to a channel */
export const broadcastRealtime = 'POST /v1/admin/projects/{projectId}/realtime/broadcast' as Operation<{ path: { projectId: string }; body: S.BroadcastRealtimeInput }, S.BroadcastRealtimeReply>
/** Replace the rules for rooms */
export const setRealtimeRooms = 'PUT /v1/admin/projects/{projectId}/realtime/rooms' as Operation<{ path: { projectId: string }; body: S.SetRealtimeRoomsInput }, S.RealtimeRoomsReply>
/** Connections, channels and events */
export const getRealtimeStats = 'GET /v1/admin/projects/{projectId}/realtime/stats' as Operation<{ path: { projectId: string } }, S.RealtimeStatsReply>
/** All codes, of users and of nobody, newest first */
export const listReferralCodes = 'GET /v1/admin/projects/{projectId}/referrals' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.ReferralCodePage>
/** Add a promo code; one is made up where none is sent */
export const createReferralCode = 'POST /v1/admin/projects/{projectId}/referrals' as Operation<{ path: { projectId: string }; body?: S.CreateReferralCodeInput }, S.ReferralCodeReply>
/** Change the defaults of users' codes, and the conditions of a referrer's reward */
export const updateReferralDefaults = 'PATCH /v1/admin/projects/{projectId}/referrals/defaults' as Operation<{ path: { projectId: string }; body?: S.UpdateReferralDefaultsInput }, S.ReferralDefaultsReply>
/** Delete a code; claims stay, and what they hold is still given */
export const deleteReferralCode = 'DELETE /v1/admin/projects/{projectId}/referrals/{codeId}' as Operation<{ path: { projectId: string; codeId: string } }, S.RevokeDeveloperSessionReply>
/** Change a code; claims that were made keep what they were promised */
export const updateReferralCode = 'PATCH /v1/admin/projects/{projectId}/referrals/{codeId}' as Operation<{ path: { projectId: string; codeId: string }; body?: S.UpdateReferralCodeInput }, S.ReferralCodeReply>
/** A code and its claims, newest first */
export const getReferralStats = 'GET /v1/admin/projects/{projectId}/referrals/{codeId}/stats' as Operation<{ path: { projectId: string; codeId: string }; query?: { include?: "user"; limit?: number; offset?: number } }, S.ReferralStatsReply>
/** Create the project's database again: from the first step that failed, or an empty one if it was lost */
export const reprovisionProject = 'POST /v1/admin/projects/{projectId}/reprovision' as Operation<{ path: { projectId: string }; body?: S.ReprovisionProjectInput }, S.ReprovisionProjectReply>
/** The reviews of the project, newest first */
export const adminListReviews = 'GET /v1/admin/projects/{projectId}/reviews' as Operation<{ path: { projectId: string }; query?: { status?: "pending" | "published" | "rejected" | "hidden"; rating?: number; user_id?: string; subject?: string; limit?: number; offset?: number } }, S.UpdateReviewPage>
/** The settings of reviews */
export const getReviewSettings = 'GET /v1/admin/projects/{projectId}/reviews/settings' as Operation<{ path: { projectId: string } }, S.ReviewSettingsReply>
/** Set how reviews are published, who writes them, and who is asked for one */
export const setReviewSettings = 'PUT /v1/admin/projects/{projectId}/reviews/settings' as Operation<{ path: { projectId: string }; body?: S.SetReviewSettingsInput }, S.ReviewSettingsReply>
/** The summary of the project, or of one subject or type */
export const getReviewsSummary = 'GET /v1/admin/projects/{projectId}/reviews/summary' as Operation<{ path: { projectId: string }; query?: { subject?: string } }, S.ReviewsSummaryReply>
/** Delete a review of any user */
export const adminDeleteReview = 'DELETE /v1/admin/projects/{projectId}/reviews/{reviewId}' as Operation<{ path: { projectId: string; reviewId: string } }, S.RevokeDeveloperSessionReply>
/** Publish, reject or hide a review */
export const updateReview = 'PATCH /v1/admin/projects/{projectId}/reviews/{reviewId}' as Operation<{ path: { projectId: string; reviewId: string }; body: S.UpdateReviewInput }, S.UpdateReviewReply>
/** Delete the reply to a review */
export const deleteReviewReply = 'DELETE /v1/admin/projects/{projectId}/reviews/{reviewId}/reply' as Operation<{ path: { projectId: string; reviewId: string } }, S.RevokeDeveloperSessionReply>
/** Answer a review; a second reply takes the place of the first */
export const replyToReview = 'PUT /v1/admin/projects/{projectId}/reviews/{reviewId}/reply' as Operation<{ path: { projectId: string; reviewId: string }; body: S.ReplyToReviewInput }, S.UpdateReviewReply>
/** Roles, newest first */
export const listRoles = 'GET /v1/admin/projects/{projectId}/roles' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.RolePage>
/** Define a role; at most 50 */
export const createRole = 'POST /v1/admin/projects/{projectId}/roles' as Operation<{ path: { projectId: string }; body: S.CreateRoleInput }, S.RoleReply>
/** Delete a role; with `force` even if users have it */
export const deleteRole = 'DELETE /v1/admin/projects/{projectId}/roles/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { force?: boolean } }, S.RevokeDeveloperSessionReply>
/** A role */
export const getRole = 'GET /v1/admin/projects/{projectId}/roles/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RoleReply>
/** Change a role; at once for all who have it */
export const updateRole = 'PATCH /v1/admin/projects/{projectId}/roles/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateRoleInput }, S.RoleReply>
/** The users who have a role, newest assignment first */
export const listRoleAssignments = 'GET /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { include?: "user"; limit?: number; offset?: number } }, S.RoleAssignmentPage>
/** Assign a role to a user; at most 20 roles for a user */
export const createRoleAssignment = 'POST /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.CreateRoleAssignmentInput }, S.RoleAssignmentReply>
/** Revoke a role from a user, in one group or everywhere */
export const deleteRoleAssignment = 'DELETE /v1/admin/projects/{projectId}/roles/{idOrKey}/assignments/{userId}' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; query?: { group_id?: string } }, S.RevokeDeveloperSessionReply>
/** Segments, newest first */
export const listSegments = 'GET /v1/admin/projects/{projectId}/segments' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.SegmentPage>
/** Define a segment; at most 200 */
export const createSegment = 'POST /v1/admin/projects/{projectId}/segments' as Operation<{ path: { projectId: string }; body: S.CreateSegmentInput }, S.SegmentReply>
/** Preview the users who match rules now, and the compiled SQL */
export const previewSegment = 'POST /v1/admin/projects/{projectId}/segments/preview' as Operation<{ path: { projectId: string }; body: S.PreviewSegmentInput }, S.PreviewSegmentReply>
/** Delete a segment that nothing refers to */
export const deleteSegment = 'DELETE /v1/admin/projects/{projectId}/segments/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A segment */
export const getSegment = 'GET /v1/admin/projects/{projectId}/segments/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.SegmentReply>
/** Change a segment */
export const updateSegment = 'PATCH /v1/admin/projects/{projectId}/segments/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateSegmentInput }, S.SegmentReply>
/** Members by day */
export const listSegmentHistory = 'GET /v1/admin/projects/{projectId}/segments/{idOrKey}/history' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { days?: number } }, S.SegmentHistoryList>
/** Members, newest first; of a dynamic segment those of the last evaluation */
export const listSegmentMembers = 'GET /v1/admin/projects/{projectId}/segments/{idOrKey}/members' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { limit?: number; offset?: number } }, S.SegmentMemberPage>
/** Put users into a static segment */
export const addSegmentMembers = 'POST /v1/admin/projects/{projectId}/segments/{idOrKey}/members' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.AddSegmentMembersInput }, S.AddSegmentMembersReply>
/** Take a user out of a static segment */
export const removeSegmentMember = 'DELETE /v1/admin/projects/{projectId}/segments/{idOrKey}/members/{userId}' as Operation<{ path: { projectId: string; idOrKey: string; userId: string } }, S.RevokeDeveloperSessionReply>
/** Why a user is in a segment, or is not */
export const explainSegmentMember = 'GET /v1/admin/projects/{projectId}/segments/{idOrKey}/members/{userId}/explain' as Operation<{ path: { projectId: string; idOrKey: string; userId: string } }, S.ExplainSegmentMemberReply>
/** Evaluate now, in the background */
export const refreshSegment = 'POST /v1/admin/projects/{projectId}/segments/{idOrKey}/refresh' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RefreshSegmentReply>
/** Users and sessions of a period; dau is always of the last 24 hours */
export const getAppSessionAnalytics = 'GET /v1/admin/projects/{projectId}/sessions' as Operation<{ path: { projectId: string }; query?: { period?: "24h" | "7d" | "30d" | "90d" } }, S.AppSessionAnalyticsReply>
/** Sessions of all users, newest first */
export const listAppSessions = 'GET /v1/admin/projects/{projectId}/sessions/list' as Operation<{ path: { projectId: string }; query?: { include?: "user"; limit?: number; offset?: number } }, S.AppSessionPage>
/** Query the project's database with SQL; it reads only */
export const createSql = 'POST /v1/admin/projects/{projectId}/sql' as Operation<{ path: { projectId: string }; body: S.CreateSqlInput }, S.SqlReply>
/** The buckets of the project */
export const listStorageBuckets = 'GET /v1/admin/projects/{projectId}/storage/buckets' as Operation<{ path: { projectId: string } }, S.StorageBucketList>
/** Delete objects by their keys, all or none; the bytes are removed in the background */
export const deleteStorageObjects = 'DELETE /v1/admin/projects/{projectId}/storage/objects' as Operation<{ path: { projectId: string }; body: S.DeleteStorageObjectsInput }, S.EmptyMediaBucketReply>
/** Objects of a bucket whose keys begin with a prefix, newest first */
export const listStorageObjects = 'GET /v1/admin/projects/{projectId}/storage/objects' as Operation<{ path: { projectId: string }; query?: { bucket?: string; prefix?: string; cursor?: string; limit?: number } }, S.StorageObjectCursorPage>
/** Bytes and objects of each bucket, and the budget of a free project */
export const getStorageUsage = 'GET /v1/admin/projects/{projectId}/storage/usage' as Operation<{ path: { projectId: string } }, S.StorageUsageReply>
/** Stores with their offers, by sort_order */
export const listStoreDefinitions = 'GET /v1/admin/projects/{projectId}/stores' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.StoreDefinitionPage>
/** Define a store; at most 50 */
export const createStoreDefinition = 'POST /v1/admin/projects/{projectId}/stores' as Operation<{ path: { projectId: string }; body: S.CreateStoreDefinitionInput }, S.StoreDefinitionReply>
/** Delete a store in which nobody has bought, with its offers */
export const deleteStoreDefinition = 'DELETE /v1/admin/projects/{projectId}/stores/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A store with its offers */
export const getStoreDefinition = 'GET /v1/admin/projects/{projectId}/stores/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.StoreDefinitionReply>
/** Change a store */
export const updateStoreDefinition = 'PATCH /v1/admin/projects/{projectId}/stores/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateStoreDefinitionInput }, S.StoreDefinitionReply>
/** Add an offer to a store; at most 200 */
export const createStoreOffer = 'POST /v1/admin/projects/{projectId}/stores/{idOrKey}/offers' as Operation<{ path: { projectId: string; idOrKey: string }; body: S.CreateStoreOfferInput }, S.StoreOfferReply>
/** Delete an offer that nobody has bought */
export const deleteStoreOffer = 'DELETE /v1/admin/projects/{projectId}/stores/{idOrKey}/offers/{offerId}' as Operation<{ path: { projectId: string; idOrKey: string; offerId: string } }, S.RevokeDeveloperSessionReply>
/** Change an offer */
export const updateStoreOffer = 'PATCH /v1/admin/projects/{projectId}/stores/{idOrKey}/offers/{offerId}' as Operation<{ path: { projectId: string; idOrKey: string; offerId: string }; body?: S.UpdateStoreOfferInput }, S.StoreOfferReply>
/** What a user sees of a store, and why */
export const previewStore = 'GET /v1/admin/projects/{projectId}/stores/{idOrKey}/preview' as Operation<{ path: { projectId: string; idOrKey: string }; query: { user_id: string } }, S.PreviewStoreReply>
/** What was sold in a store */
export const getStoreStats = 'GET /v1/admin/projects/{projectId}/stores/{idOrKey}/stats' as Operation<{ path: { projectId: string; idOrKey: string } }, S.StoreStatsReply>
/** Definitions, newest first */
export const listStreakDefinitions = 'GET /v1/admin/projects/{projectId}/streaks' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.StreakDefinitionPage>
/** Define a streak; at most 50 */
export const createStreakDefinition = 'POST /v1/admin/projects/{projectId}/streaks' as Operation<{ path: { projectId: string }; body: S.CreateStreakDefinitionInput }, S.StreakDefinitionReply>
/** Delete a definition with all users' streaks */
export const deleteStreakDefinition = 'DELETE /v1/admin/projects/{projectId}/streaks/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A definition */
export const getStreakDefinition = 'GET /v1/admin/projects/{projectId}/streaks/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.StreakDefinitionReply>
/** Change a definition; counted periods keep the rules that they were counted under */
export const updateStreakDefinition = 'PATCH /v1/admin/projects/{projectId}/streaks/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateStreakDefinitionInput }, S.StreakDefinitionReply>
/** Periods of a streak that were filled, and streaks that broke, on each day */
export const getStreakDaily = 'GET /v1/admin/projects/{projectId}/streaks/{idOrKey}/daily' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { from?: string; to?: string; timezone?: string } }, S.StreakDailyReply>
/** Simulate changed rules on stored events, writing nothing */
export const simulateStreak = 'POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/simulate' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.SimulateStreakInput }, S.SimulateStreakReply>
/** Statistics of a streak */
export const getStreakStats = 'GET /v1/admin/projects/{projectId}/streaks/{idOrKey}/stats' as Operation<{ path: { projectId: string; idOrKey: string } }, S.StreakStatsReply>
/** Users who have a streak, newest first, all or those of one status */
export const listStreakUsers = 'GET /v1/admin/projects/{projectId}/streaks/{idOrKey}/users' as Operation<{ path: { projectId: string; idOrKey: string }; query?: { limit?: number; offset?: number; status?: "active" | "at_risk" | "frozen" | "broken"; include?: "user" } }, S.StreakUserPage>
/** Give a user freezes, up to the streak's freezes_max */
export const grantUserStreakFreezes = 'POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/users/{userId}/freezes' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; body: S.GrantUserStreakFreezesInput }, S.StreakReply>
/** Pause a user's streak, under the same limits as users */
export const pauseUserStreak = 'POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/users/{userId}/pause' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; body: S.PauseStreakInput }, S.StreakReply>
/** Qualify a period of a user's streak, by default the current one */
export const qualifyUserStreak = 'POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/users/{userId}/qualify' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; body?: S.QualifyUserStreakInput }, S.StreakReply>
/** Restore a user's broken streak, within its restore window */
export const restoreUserStreak = 'POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/users/{userId}/restore' as Operation<{ path: { projectId: string; idOrKey: string; userId: string }; body?: S.RestoreUserStreakInput }, S.StreakReply>
/** Subscriptions of stores, newest first */
export const listSubscriptions = 'GET /v1/admin/projects/{projectId}/subscriptions' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; status?: "trial" | "active" | "grace" | "cancelled" | "paused" | "refunded" | "expired"; product_id?: string; store?: string; user_id?: string; expiring_before?: string; include?: "user" } }, S.SubscriptionPage>
/** Subscriptions by status, trials of 30 days, and how many give access of each product */
export const getSubscriptionSummary = 'GET /v1/admin/projects/{projectId}/subscriptions/summary' as Operation<{ path: { projectId: string } }, S.SubscriptionSummaryReply>
/** A subscription with its grants and the provider's events, in order */
export const getSubscription = 'GET /v1/admin/projects/{projectId}/subscriptions/{subscriptionId}' as Operation<{ path: { projectId: string; subscriptionId: string } }, S.SubscriptionDetailReply>
/** Replay the stored events of a subscription */
export const replaySubscription = 'POST /v1/admin/projects/{projectId}/subscriptions/{subscriptionId}/replay' as Operation<{ path: { projectId: string; subscriptionId: string }; query?: { dry_run?: boolean } }, S.ReplaySubscriptionReply>
/** Clients of users, last used first */
export const listClients = 'GET /v1/admin/projects/{projectId}/sync/clients' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; user_id?: string } }, S.ClientPage>
/** The log of changes, and rejected mutations of a day */
export const getSyncStats = 'GET /v1/admin/projects/{projectId}/sync/stats' as Operation<{ path: { projectId: string } }, S.SyncStatsReply>
/** Move a project into another organization, as owner of both */
export const transfer = 'POST /v1/admin/projects/{projectId}/transfer' as Operation<{ path: { projectId: string }; body: S.TransferInput }, S.TransferReply>
/** Types of the rows of the project's collections, as TypeScript and as JSON Schema */
export const getCollectionTypes = 'GET /v1/admin/projects/{projectId}/types' as Operation<{ path: { projectId: string } }, S.CollectionTypesReply>
/** Delete the user with an anonymous id, with all of their data */
export const deleteUsers = 'DELETE /v1/admin/projects/{projectId}/users' as Operation<{ path: { projectId: string }; query?: { anonymous_id?: string } }, S.RevokeDeveloperSessionReply>
/** Users, newest-active first */
export const listUsers = 'GET /v1/admin/projects/{projectId}/users' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number; search?: string; segment_id?: string; sort?: "created_at" | "-created_at" | "last_seen_at" | "-last_seen_at" | "display_name" | "-display_name"; is_banned?: boolean; last_seen_since?: string } }, S.UserPage>
/** Create a user; with a generated anonymous id when no identity is given */
export const createUser = 'POST /v1/admin/projects/{projectId}/users' as Operation<{ path: { projectId: string }; body?: S.CreateUserInput }, S.UserReply>
/** Update up to 1000 users; each item succeeds or fails separately */
export const bulkUpdateUsers = 'POST /v1/admin/projects/{projectId}/users/bulk-update' as Operation<{ path: { projectId: string }; body: S.BulkUpdateUsersInput }, S.BulkUpdateUsersReply>
/** Create up to 1000 anonymous users that share properties */
export const findUserCohort = 'POST /v1/admin/projects/{projectId}/users/cohort' as Operation<{ path: { projectId: string }; body: S.FindUserCohortInput }, S.FindUserCohortReply>
/** All users, as CSV or NDJSON, oldest first */
export const exportUsers = 'GET /v1/admin/projects/{projectId}/users/export' as Operation<{ path: { projectId: string }; query?: { format?: "csv" | "ndjson"; since?: string } }, RawReply>
/** Delete a user with all of their data */
export const deleteUser = 'DELETE /v1/admin/projects/{projectId}/users/{userId}' as Operation<{ path: { projectId: string; userId: string } }, S.RevokeDeveloperSessionReply>
/** A user, with streaks and entitlements */
export const adminGetUser = 'GET /v1/admin/projects/{projectId}/users/{userId}' as Operation<{ path: { projectId: string; userId: string } }, S.AdminUserReply>
/** Change the given fields of a user; `properties` are replaced, or merged with `merge_properties` */
export const updateUser = 'PATCH /v1/admin/projects/{projectId}/users/{userId}' as Operation<{ path: { projectId: string; userId: string }; body?: S.UpdateUserInput }, S.UserReply>
/** A user's balances, `{CODE: n}` */
export const getUserBalances = 'GET /v1/admin/projects/{projectId}/users/{userId}/balances' as Operation<{ path: { projectId: string; userId: string } }, S.GetUserBalancesReply>
/** Devices that a user has registered for push, newest first */
export const listUserDevices = 'GET /v1/admin/projects/{projectId}/users/{userId}/devices' as Operation<{ path: { projectId: string; userId: string }; query?: { limit?: number; offset?: number } }, S.UserDevicePage>
/** A user's entitlements, each with its grants */
export const listUserEntitlements = 'GET /v1/admin/projects/{projectId}/users/{userId}/entitlements' as Operation<{ path: { projectId: string; userId: string } }, S.UserEntitlementList>
/** Grant an entitlement, or extend an earlier promotional grant */
export const grantUserEntitlement = 'POST /v1/admin/projects/{projectId}/users/{userId}/entitlements' as Operation<{ path: { projectId: string; userId: string }; body: S.GrantUserEntitlementInput }, S.EntitlementReply>
/** Remove the promotional grants of an entitlement; purchases stay */
export const revokeUserEntitlement = 'DELETE /v1/admin/projects/{projectId}/users/{userId}/entitlements/{entitlementId}' as Operation<{ path: { projectId: string; userId: string; entitlementId: string } }, S.RevokeUserEntitlementReply>
/** A user's events, most recent first */
export const listUserEvents = 'GET /v1/admin/projects/{projectId}/users/{userId}/events' as Operation<{ path: { projectId: string; userId: string }; query?: { limit?: number; offset?: number; include_system?: boolean } }, S.UserEventPage>
/** A user's events, as CSV or NDJSON, oldest first */
export const exportUserEvents = 'GET /v1/admin/projects/{projectId}/users/{userId}/events/export' as Operation<{ path: { projectId: string; userId: string }; query?: { format?: "csv" | "ndjson"; since?: string; until?: string; event_name?: string; include_system?: boolean } }, RawReply>
/** All data of a user, as NDJSON */
export const exportUser = 'GET /v1/admin/projects/{projectId}/users/{userId}/export' as Operation<{ path: { projectId: string; userId: string } }, RawReply>
/** Reset sections of a user's state; optionally delete the user */
export const resetUser = 'DELETE /v1/admin/projects/{projectId}/users/{userId}/reset' as Operation<{ path: { projectId: string; userId: string }; query?: { sections?: string; delete_user?: boolean } }, S.ResetUserReply>
/** Roles that a user was given, newest first */
export const listUserRoles = 'GET /v1/admin/projects/{projectId}/users/{userId}/roles' as Operation<{ path: { projectId: string; userId: string } }, S.UserRoleList>
/** Segments that a user is in, the newest first */
export const listUserSegments = 'GET /v1/admin/projects/{projectId}/users/{userId}/segments' as Operation<{ path: { projectId: string; userId: string } }, S.UserSegmentList>
/** Sign in as a user for tests; only in projects with environment development */
export const createUserSession = 'POST /v1/admin/projects/{projectId}/users/{userId}/session' as Operation<{ path: { projectId: string; userId: string } }, S.UserSessionReply>
/** Sessions of a user in the app with their devices, newest first */
export const listUserAppSessions = 'GET /v1/admin/projects/{projectId}/users/{userId}/sessions' as Operation<{ path: { projectId: string; userId: string }; query?: { limit?: number; offset?: number } }, S.UserAppSessionPage>
/** Subscriptions, newest first */
export const listWebhooks = 'GET /v1/admin/projects/{projectId}/webhooks' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.WebhookPage>
/** Subscribe to an event with signed deliveries; the secret is shown once */
export const createWebhook = 'POST /v1/admin/projects/{projectId}/webhooks' as Operation<{ path: { projectId: string }; body: S.CreateWebhookInput }, S.CreateWebhookReply>
/** Deliveries of all subscriptions, newest first, with their attempt logs */
export const listAllWebhookDeliveries = 'GET /v1/admin/projects/{projectId}/webhooks/deliveries' as Operation<{ path: { projectId: string }; query?: { limit?: number; cursor?: string; status?: "pending" | "delivered" | "failed" | "dlq"; since?: string } }, S.WebhookDeliveryCursorPage>
/** A delivery with its payload and the outcome of each attempt */
export const getWebhookDelivery = 'GET /v1/admin/projects/{projectId}/webhooks/deliveries/{deliveryId}' as Operation<{ path: { projectId: string; deliveryId: string } }, S.WebhookDeliveryDetailReply>
/** Send a failed delivery again: same payload, same idempotency key */
export const replayWebhookDelivery = 'POST /v1/admin/projects/{projectId}/webhooks/deliveries/{deliveryId}/replay' as Operation<{ path: { projectId: string; deliveryId: string } }, S.WebhookDeliveryReply>
/** Delete a subscription with its deliveries */
export const deleteWebhook = 'DELETE /v1/admin/projects/{projectId}/webhooks/{webhookId}' as Operation<{ path: { projectId: string; webhookId: string } }, S.RevokeDeveloperSessionReply>
/** A subscription with statistics of the last 24 hours */
export const getWebhook = 'GET /v1/admin/projects/{projectId}/webhooks/{webhookId}' as Operation<{ path: { projectId: string; webhookId: string } }, S.WebhookDetailReply>
/** Change a subscription, disable it, or activate a degraded one again */
export const updateWebhook = 'PATCH /v1/admin/projects/{projectId}/webhooks/{webhookId}' as Operation<{ path: { projectId: string; webhookId: string }; body?: S.UpdateWebhookInput }, S.WebhookReply>
/** Deliveries of a subscription, newest first, with their attempt logs */
export const listWebhookDeliveries = 'GET /v1/admin/projects/{projectId}/webhooks/{webhookId}/deliveries' as Operation<{ path: { projectId: string; webhookId: string }; query?: { limit?: number; cursor?: string; status?: "pending" | "delivered" | "failed" | "dlq"; since?: string } }, S.WebhookDeliveryCursorPage>
/** Send all failed deliveries of a range again, as an operation */
export const replayWebhook = 'POST /v1/admin/projects/{projectId}/webhooks/{webhookId}/replay' as Operation<{ path: { projectId: string; webhookId: string }; body?: S.ReplayWebhookInput }, S.ReplayWebhookReply>
/** Rotate the signing secret, for deliveries that are queued from now on; shown once */
export const rotateWebhookSecret = 'POST /v1/admin/projects/{projectId}/webhooks/{webhookId}/rotate-secret' as Operation<{ path: { projectId: string; webhookId: string } }, S.RotateWebhookSecretReply>
/** Send a synthetic svc.webhook.test now, and return the receiver's response */
export const testWebhook = 'POST /v1/admin/projects/{projectId}/webhooks/{webhookId}/test' as Operation<{ path: { projectId: string; webhookId: string } }, S.TestWebhookReply>
/** Boosts, newest first */
export const listXpBoosts = 'GET /v1/admin/projects/{projectId}/xp/boosts' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.XpBoostPage>
/** Define a boost, which multiplies the XP of rules for a time; at most 50 */
export const createXpBoost = 'POST /v1/admin/projects/{projectId}/xp/boosts' as Operation<{ path: { projectId: string }; body: S.CreateXpBoostInput }, S.XpBoostReply>
/** Delete a boost */
export const deleteXpBoost = 'DELETE /v1/admin/projects/{projectId}/xp/boosts/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A boost, by its id or its name */
export const getXpBoost = 'GET /v1/admin/projects/{projectId}/xp/boosts/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.XpBoostReply>
/** Change a boost */
export const updateXpBoost = 'PATCH /v1/admin/projects/{projectId}/xp/boosts/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateXpBoostInput }, S.XpBoostReply>
/** XP that was given on each day, and to how many users */
export const getXpDaily = 'GET /v1/admin/projects/{projectId}/xp/daily' as Operation<{ path: { projectId: string }; query?: { from?: string; to?: string; timezone?: string } }, S.XpDailyReply>
/** Give a user XP, or take it */
export const grantXp = 'POST /v1/admin/projects/{projectId}/xp/grant' as Operation<{ path: { projectId: string }; body: S.GrantXpInput }, S.XpHistoryReply>
/** The table of levels */
export const adminListXpLevels = 'GET /v1/admin/projects/{projectId}/xp/levels' as Operation<{ path: { projectId: string } }, S.XpLevelList>
/** Replace the table of levels, listed or generated */
export const setXpLevels = 'PUT /v1/admin/projects/{projectId}/xp/levels' as Operation<{ path: { projectId: string }; body?: S.SetXpLevelsInput }, S.XpLevelList>
/** Rules, newest first */
export const listXpRules = 'GET /v1/admin/projects/{projectId}/xp/rules' as Operation<{ path: { projectId: string }; query?: { limit?: number; offset?: number } }, S.XpRulePage>
/** Define a rule: XP for events; at most 200 */
export const createXpRule = 'POST /v1/admin/projects/{projectId}/xp/rules' as Operation<{ path: { projectId: string }; body: S.CreateXpRuleInput }, S.XpRuleReply>
/** Delete a rule; XP already awarded stays */
export const deleteXpRule = 'DELETE /v1/admin/projects/{projectId}/xp/rules/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** A rule */
export const getXpRule = 'GET /v1/admin/projects/{projectId}/xp/rules/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string } }, S.XpRuleReply>
/** Change a rule; XP already awarded stays */
export const updateXpRule = 'PATCH /v1/admin/projects/{projectId}/xp/rules/{idOrKey}' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.UpdateXpRuleInput }, S.XpRuleReply>
/** Simulate a rule on stored events, writing nothing */
export const simulateXpRule = 'POST /v1/admin/projects/{projectId}/xp/rules/{idOrKey}/simulate' as Operation<{ path: { projectId: string; idOrKey: string }; body?: S.SimulateXpRuleInput }, S.SimulateXpRuleReply>
/** XP of the last seven days, and users by level */
export const getXpStats = 'GET /v1/admin/projects/{projectId}/xp/stats' as Operation<{ path: { projectId: string } }, S.XpStatsReply>
/** The ledger of XP, of all users or of one, newest first */
export const listXpTransactions = 'GET /v1/admin/projects/{projectId}/xp/transactions' as Operation<{ path: { projectId: string }; query?: { user_id?: string; include?: "user"; cursor?: string; limit?: number } }, S.XpTransactionCursorPage>
/** Service accounts of the organizations that the developer administrates, or of one, newest first */
export const listServiceAccounts = 'GET /v1/admin/service-accounts' as Operation<{ query?: { limit?: number; offset?: number; organization_id?: string } }, S.ServiceAccountPage>
/** Create a service account in an organization, as its admin; the key is shown once */
export const createServiceAccount = 'POST /v1/admin/service-accounts' as Operation<{ body: S.CreateServiceAccountInput }, S.CreateServiceAccountReply>
/** Delete a service account; its key and its tokens end */
export const deleteServiceAccount = 'DELETE /v1/admin/service-accounts/{serviceAccountId}' as Operation<{ path: { serviceAccountId: string } }, S.RevokeDeveloperSessionReply>
/** A service account */
export const getServiceAccount = 'GET /v1/admin/service-accounts/{serviceAccountId}' as Operation<{ path: { serviceAccountId: string } }, S.ServiceAccountReply>
/** Change a service account; its live tokens may do no more than it, within 30 seconds */
export const updateServiceAccount = 'PATCH /v1/admin/service-accounts/{serviceAccountId}' as Operation<{ path: { serviceAccountId: string }; body?: S.UpdateServiceAccountInput }, S.ServiceAccountReply>
/** Replace the key of a service account; the former key ends, live tokens do not */
export const rotateServiceAccountKey = 'POST /v1/admin/service-accounts/{serviceAccountId}/rotate-key' as Operation<{ path: { serviceAccountId: string } }, S.CreateServiceAccountReply>
/** The developer's personal access tokens, newest first */
export const listAccessTokens = 'GET /v1/admin/tokens' as Operation<{ query?: { limit?: number; offset?: number } }, S.AccessTokenPage>
/** Create a personal access token; its text is shown once */
export const createAccessToken = 'POST /v1/admin/tokens' as Operation<{ body: S.CreateAccessTokenInput }, S.CreateAccessTokenReply>
/** Revoke a personal access token at once */
export const revokeAccessToken = 'DELETE /v1/admin/tokens/{tokenId}' as Operation<{ path: { tokenId: string } }, S.RevokeDeveloperSessionReply>
/** Rotate a personal access token; the former text stays valid for one hour */
export const rotateAccessToken = 'POST /v1/admin/tokens/{tokenId}/rotate' as Operation<{ path: { tokenId: string } }, S.CreateAccessTokenReply>
/** Delete the account with its sessions, tokens, personal organization and audit trail */
export const deleteDeveloperAccount = 'POST /v1/auth/developer/account/delete' as Operation<{ body: S.DeleteDeveloperAccountInput }, S.DeleteDeveloperAccountReply>
/** Approve or refuse the tool that shows this user code */
export const decideDeviceSignIn = 'POST /v1/auth/developer/device/approve' as Operation<{ body: S.DecideDeviceSignInInput }, S.DecideDeviceSignInReply>
/** Start the sign-in of a tool: a code for the tool, and one that a developer enters at verification_uri */
export const startDeviceSignIn = 'POST /v1/auth/developer/device/code' as Operation<{ body: S.StartDeviceSignInInput }, S.StartDeviceSignInReply>
/** Which tool waits under a user code, and where it asked from: what a developer reads before approving */
export const findDeviceSignIn = 'POST /v1/auth/developer/device/find' as Operation<{ body: S.FindDeviceSignInInput }, S.FindDeviceSignInReply>
/** Ask, once in each interval, whether the developer has approved; then the tool is signed in */
export const pollDeviceSignIn = 'POST /v1/auth/developer/device/token' as Operation<{ body: S.PollDeviceSignInInput }, S.SignInDeveloperReply>
/** Finish a sign-in with the code and the state that GitHub returned; a new developer gets an account */
export const finishGithubSignIn = 'POST /v1/auth/developer/github/callback' as Operation<{ body: S.FinishGithubSignInInput }, S.SignInDeveloperReply>
/** Begin a sign-in: send the browser to authorize_url, and keep state in it to compare on return */
export const startGithubSignIn = 'GET /v1/auth/developer/github/start' as Operation<{ query: { redirect_uri: string } }, S.StartGithubSignInReply>
/** Sign in with email and password */
export const signInDeveloper = 'POST /v1/auth/developer/login' as Operation<{ body: S.SignInDeveloperInput }, S.SignInDeveloperReply>
/** End the session */
export const signOutDeveloper = 'POST /v1/auth/developer/logout' as Operation<{ body: S.SignOutDeveloperInput }, S.PasswordReply>
/** The current developer, and the token of the request */
export const getDeveloper = 'GET /v1/auth/developer/me' as Operation<Nothing, S.DeveloperReply>
/** Change the name or the password; a new password ends all other sessions */
export const updateDeveloper = 'PATCH /v1/auth/developer/me' as Operation<{ body?: S.UpdateDeveloperInput }, S.DeveloperReply>
/** Request a sign-in code by mail; the response does not reveal whether there is an account */
export const requestDeveloperCode = 'POST /v1/auth/developer/otp/request' as Operation<{ body: S.RequestDeveloperCodeInput }, S.RequestDeveloperCodeReply>
/** Sign in with the code of the mail, which marks the address verified */
export const signInDeveloperWithCode = 'POST /v1/auth/developer/otp/verify' as Operation<{ body: S.SignInDeveloperWithCodeInput }, S.SignInDeveloperReply>
/** Redeem an invite code, to be allowed to create projects */
export const redeemInvite = 'POST /v1/auth/developer/redeem-invite' as Operation<{ body: S.RedeemInviteInput }, S.RedeemInviteReply>
/** Replace both tokens of a session */
export const refreshDeveloperSession = 'POST /v1/auth/developer/refresh' as Operation<{ body: S.SignOutDeveloperInput }, S.RefreshDeveloperSessionReply>
/** The developer's live sessions, newest first */
export const listDeveloperSessions = 'GET /v1/auth/developer/sessions' as Operation<{ query?: { limit?: number; offset?: number } }, S.DeveloperSessionPage>
/** End a session */
export const revokeDeveloperSession = 'DELETE /v1/auth/developer/sessions/{sessionId}' as Operation<{ path: { sessionId: string } }, S.RevokeDeveloperSessionReply>
/** Create a developer account and sign in to it */
export const signUpDeveloper = 'POST /v1/auth/developer/signup' as Operation<{ body: S.SignUpDeveloperInput }, S.SignInDeveloperReply>
/** Ask for access */
export const joinWaitlist = 'POST /v1/auth/developer/waitlist' as Operation<{ body: S.JoinWaitlistInput }, S.RequestDeveloperCodeReply>
/** This OpenAPI document */
export const getOpenApi = 'GET /v1/openapi.json' as Operation<{ header?: { "If-None-Match"?: string } }, S.GetUnversionedOpenApiReply>
/** Events of the billing provider of the installation */
export const receiveBillingEvents = 'POST /webhooks/billing' as Operation<{ body?: Record<string, unknown> }, S.ReceiveBillingEventsReply>
/** What a mail provider reports: delivered, bounce, complaint */
export const receiveEmailEvents = 'POST /webhooks/email' as Operation<{ query?: { project_id?: string }; body: S.ReceiveEmailEventsInput }, S.ReceiveEmailEventsReply>
/** Events of the subscription provider */
export const receiveRevenuecatEvents = 'POST /webhooks/revenuecat' as Operation<{ query?: { project_id?: string }; body: S.ReceiveRevenuecatEventsInput }, S.ReportPushReceivedReply>
/** Events of the paywall provider */
export const receiveSuperwallEvents = 'POST /webhooks/superwall' as Operation<{ query?: { project_id?: string }; body: S.ReceiveSuperwallEventsInput }, S.ReportPushReceivedReply>
