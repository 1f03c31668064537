// Made from docs/schema/openapi-released.json.gz by `npm run docs`.
import type { Nothing, Operation, RawReply } from '../operation.ts'
import type * as S from './schemas.ts'

/** Achievements with the caller's progress, by sort_order */
export const listAchievements = 'GET /v1/client/achievements' as Operation<{ query?: { limit?: number; offset?: number } }, S.ListAchievementsReply>
/** Mark achievements as seen, on every device */
export const markAchievementsSeen = 'POST /v1/client/achievements/seen' as Operation<{ body: S.MarkAchievementsSeenInput }, S.MarkAchievementsSeenReply>
/** Achievements that the caller has unlocked and not seen yet, oldest first */
export const listUnseenAchievements = 'GET /v1/client/achievements/unseen' as Operation<Nothing, S.UnseenAchievementList>
/** One achievement with the caller's progress */
export const getAchievement = 'GET /v1/client/achievements/{idOrKey}' as Operation<{ path: { idOrKey: string } }, S.GetAchievementReply>
/** The prompts that apps may invoke */
export const listAiPrompts = 'GET /v1/client/ai/prompts' as Operation<Nothing, S.AiPromptList>
/** Invoke a prompt */
export const invokeAiPrompt = 'POST /v1/client/ai/prompts/{name}/invoke' as Operation<{ path: { name: string }; body?: S.InvokeAiPromptInput }, S.InvokeAiPromptReply | RawReply>
/** The caller's own calls and tokens today (UTC) */
export const getAiUsage = 'GET /v1/client/ai/usage' as Operation<Nothing, S.AiUsageReply>
/** Sign in without an identity, or again by anonymous id */
export const signInAnonymously = 'POST /v1/client/auth/anonymous' as Operation<{ body?: S.SignInAnonymouslyInput }, S.UserSessionReply>
/** Sign in with email and password */
export const signInWithPassword = 'POST /v1/client/auth/email/login' as Operation<{ body: S.SignInDeveloperInput }, S.UserSessionReply>
/** Send a six-digit code by mail */
export const requestEmailCode = 'POST /v1/client/auth/email/otp/request' as Operation<{ body: S.RequestEmailCodeInput }, S.RequestDeveloperCodeReply>
/** Sign in with a mailed code */
export const signInWithEmailCode = 'POST /v1/client/auth/email/otp/verify' as Operation<{ body: S.SignInWithEmailCodeInput }, S.UserSessionReply>
/** Sign up with email and password */
export const signUpWithPassword = 'POST /v1/client/auth/email/signup' as Operation<{ body: S.SignUpWithPasswordInput }, S.UserSessionReply>
/** Public keys of the project's session tokens */
export const getJwks = 'GET /v1/client/auth/jwks' as Operation<Nothing, S.JwksReply>
/** Link an email, a phone, Apple, Google or a password to the signed-in user */
export const linkIdentity = 'POST /v1/client/auth/link' as Operation<{ body: S.LinkIdentityInput }, S.MeReply>
/** End a session, or with its own access token all sessions of its user */
export const signOut = 'POST /v1/client/auth/logout' as Operation<{ body: S.SignOutInput }, S.PasswordReply>
/** Send a sign-in link by mail (magic link) */
export const requestMagicLink = 'POST /v1/client/auth/magic-link/request' as Operation<{ body: S.RequestDeveloperCodeInput }, S.RequestDeveloperCodeReply>
/** Sign in with the token of a mailed link, once */
export const signInWithMagicLink = 'POST /v1/client/auth/magic-link/verify' as Operation<{ body: S.SignInWithMagicLinkInput }, S.UserSessionReply>
/** Merge a purely anonymous user into the signed-in one */
export const mergeAccounts = 'POST /v1/client/auth/merge' as Operation<{ body: S.MergeAccountsInput }, S.MergeAccountsReply>
/** Begin a sign-in by redirect: open the url in a browser */
export const beginRedirectSignIn = 'POST /v1/client/auth/oauth/begin' as Operation<{ body: S.BeginRedirectSignInInput }, S.RedirectSignInBegunReply>
/** Finish a sign-in by redirect: the code and its verifier become a session, once */
export const finishRedirectSignIn = 'POST /v1/client/auth/oauth/exchange' as Operation<{ body: S.FinishRedirectSignInInput }, S.UserSessionReply>
/** Begin to link a provider to the signed-in user: open the url in a browser */
export const linkByRedirect = 'POST /v1/client/auth/oauth/link' as Operation<{ body: S.BeginRedirectSignInInput }, S.RedirectSignInBegunReply>
/** Set or change the signed-in user's password, and end their other sessions */
export const setPassword = 'POST /v1/client/auth/password' as Operation<{ body: S.SetPasswordInput }, S.PasswordReply>
/** Send a six-digit code as a text message */
export const requestPhoneCode = 'POST /v1/client/auth/phone/otp/request' as Operation<{ body: S.RequestPhoneCodeInput }, S.RequestDeveloperCodeReply>
/** Sign in with a code from a text message */
export const signInWithPhoneCode = 'POST /v1/client/auth/phone/otp/verify' as Operation<{ body: S.SignInWithPhoneCodeInput }, S.UserSessionReply>
/** Replace both tokens of a session */
export const refreshSession = 'POST /v1/client/auth/refresh' as Operation<{ body: S.SignOutDeveloperInput }, S.RefreshSessionReply>
/** The user's live sessions, newest first */
export const listSessions = 'GET /v1/client/auth/sessions' as Operation<{ query?: { limit?: number; offset?: number } }, S.SessionPage>
/** End one of the user's sessions */
export const revokeSession = 'DELETE /v1/client/auth/sessions/{sessionId}' as Operation<{ path: { sessionId: string } }, S.RevokeDeveloperSessionReply>
/** Sign in with an identity token of Apple or Google */
export const signInWithProvider = 'POST /v1/client/auth/social' as Operation<{ body: S.SignInWithProviderInput }, S.UserSessionReply>
/** Unlink a way to sign in from the signed-in user */
export const unlinkIdentity = 'POST /v1/client/auth/unlink' as Operation<{ body: S.UnlinkIdentityInput }, S.MeReply>
/** Active items, newest first */
export const listCatalogItems = 'GET /v1/client/catalog' as Operation<{ query?: { limit?: number; offset?: number; category?: string; tag?: string } }, S.CatalogItemPage>
/** An active item, by id or key */
export const getCatalogItem = 'GET /v1/client/catalog/{itemId}' as Operation<{ path: { itemId: string } }, S.CatalogItemReply>
/** Challenges of a status, with the caller's progress */
export const listChallenges = 'GET /v1/client/challenges' as Operation<{ query?: { limit?: number; offset?: number; status?: "active" | "upcoming" | "ended" } }, S.ChallengePage>
/** A challenge, with the caller's progress */
export const getChallenge = 'GET /v1/client/challenges/{challengeId}' as Operation<{ path: { challengeId: string } }, S.ChallengeReply>
/** Join a challenge, also before it starts; earlier events within its window count */
export const joinChallenge = 'POST /v1/client/challenges/{challengeId}/join' as Operation<{ path: { challengeId: string }; body?: S.JoinChallengeInput }, S.JoinChallengeReply>
/** Ranking of a challenge, by progress, then by who reached it first */
export const getChallengeLeaderboard = 'GET /v1/client/challenges/{challengeId}/leaderboard' as Operation<{ path: { challengeId: string }; query?: { scope?: "global" | "friends"; limit?: number } }, S.ChallengeLeaderboardList>
/** Leave a challenge: counting stops until the user joins again */
export const leaveChallenge = 'POST /v1/client/challenges/{challengeId}/leave' as Operation<{ path: { challengeId: string } }, S.JoinChallengeReply>
/** Up to 100 writes, all or none */
export const runTransaction = 'POST /v1/client/collections/transaction' as Operation<{ header?: { "X-Group-Context"?: string }; body: S.RunTransactionInput }, S.RunTransactionReply>
/** Find rows by the query string */
export const listRows = 'GET /v1/client/collections/{name}' as Operation<{ path: { name: string }; query?: { query?: string; limit?: number; offset?: number; cursor?: string; select?: string; order?: string; include?: string; include_deleted?: boolean; q?: string; q_columns?: string }; header?: { "X-Group-Context"?: string } }, S.ListRowsReply>
/** Insert or upsert a row */
export const createRow = 'POST /v1/client/collections/{name}' as Operation<{ path: { name: string }; query?: { on_conflict?: "error" | "ignore" | "update"; conflict_target?: string }; header?: { "X-Group-Context"?: string; "Idempotency-Key"?: string }; body?: Record<string, unknown> }, S.RowReply>
/** Counts, sums, averages and extremes, by group */
export const aggregateRows = 'POST /v1/client/collections/{name}/aggregate' as Operation<{ path: { name: string }; header?: { "X-Group-Context"?: string }; body: S.AggregateRowsInput }, S.RunTransactionReply>
/** Insert up to 500 rows, all or none */
export const createRows = 'POST /v1/client/collections/{name}/batch' as Operation<{ path: { name: string }; header?: { "X-Group-Context"?: string }; body: S.CreateRowsInput }, S.RowList>
/** How many rows match */
export const countRows = 'GET /v1/client/collections/{name}/count' as Operation<{ path: { name: string }; query?: { filter?: string; include_deleted?: boolean }; header?: { "X-Group-Context"?: string } }, S.PushInboxUnreadCountReply>
/** Find rows */
export const findRows = 'POST /v1/client/collections/{name}/find' as Operation<{ path: { name: string }; header?: { "X-Group-Context"?: string }; body?: S.FindRowsInput }, S.ListRowsReply>
/** Rows nearest to a vector, or to a text, nearest first */
export const findNearestRows = 'POST /v1/client/collections/{name}/find-nearest' as Operation<{ path: { name: string }; header?: { "X-Group-Context"?: string }; body: S.FindNearestRowsInput }, S.FindNearestRowsList>
/** Delete a row; it can be restored for 30 days */
export const deleteRow = 'DELETE /v1/client/collections/{name}/{id}' as Operation<{ path: { name: string; id: string }; header?: { "X-Group-Context"?: string; "If-Match"?: string } }, S.DeleteRowReply>
/** One row */
export const getRow = 'GET /v1/client/collections/{name}/{id}' as Operation<{ path: { name: string; id: string }; header?: { "X-Group-Context"?: string; "If-None-Match"?: string } }, S.RowReply>
/** Change a row */
export const updateRow = 'PATCH /v1/client/collections/{name}/{id}' as Operation<{ path: { name: string; id: string }; header?: { "X-Group-Context"?: string; "If-Match"?: string }; body?: Record<string, unknown> }, S.RowReply>
/** Restore a row that was deleted in the last 30 days */
export const restoreRow = 'POST /v1/client/collections/{name}/{id}/restore' as Operation<{ path: { name: string; id: string }; header?: { "X-Group-Context"?: string } }, S.RowReply>
/** Every key with its value for the caller */
export const getConfig = 'GET /v1/client/config' as Operation<{ header?: { "If-None-Match"?: string } }, S.GetConfigReply>
/** The published entries that the caller may see, each in their language */
export const listContent = 'GET /v1/client/content' as Operation<{ query?: { limit?: number; offset?: number; content_type?: string; tag?: string; locale?: string }; header?: { "If-None-Match"?: string; "Accept-Language"?: string } }, S.ContentPage>
/** A published entry in the language of the caller */
export const getContent = 'GET /v1/client/content/{idOrKey}' as Operation<{ path: { idOrKey: string }; query?: { locale?: string; preview_token?: string }; header?: { "If-None-Match"?: string; "Accept-Language"?: string } }, S.ContentReply>
/** The caller's balances */
export const listCurrencies = 'GET /v1/client/currencies' as Operation<Nothing, S.CurrencyList>
/** Credit a user, by a server key on behalf of them */
export const creditCurrency = 'POST /v1/client/currencies/{code}/credit' as Operation<{ path: { code: string }; body: S.CreditCurrencyInput }, S.CreditCurrencyReply>
/** Spend the caller's currency */
export const spendCurrency = 'POST /v1/client/currencies/{code}/spend' as Operation<{ path: { code: string }; body: S.SpendCurrencyInput }, S.CreditCurrencyReply>
/** The caller's ledger of a currency, newest first */
export const listCurrencyTransactions = 'GET /v1/client/currencies/{code}/transactions' as Operation<{ path: { code: string }; query?: { cursor?: string; limit?: number } }, S.CurrencyTransactionCursorPage>
/** What the server makes of the key and the session, and its time */
export const ping = 'GET /v1/client/diagnostics/ping' as Operation<Nothing, S.PingReply>
/** Report errors, crashes, logs and performance, up to 50 at once */
export const sendReports = 'POST /v1/client/diagnostics/reports' as Operation<{ body: S.SendReportsInput }, S.SendReportsReply>
/** Which mail the caller gets */
export const getEmailPreferences = 'GET /v1/client/email/preferences' as Operation<Nothing, S.EmailPreferencesReply>
/** Choose which mail the caller gets; categories that are not named stay */
export const setEmailPreferences = 'PUT /v1/client/email/preferences' as Operation<{ body?: S.SetEmailPreferencesInput }, S.EmailPreferencesReply>
/** The caller's entitlements */
export const listEntitlements = 'GET /v1/client/entitlements' as Operation<{ query?: { active_only?: boolean } }, S.EntitlementList>
/** Bring the caller's purchases up to date with the subscription provider */
export const restoreEntitlements = 'POST /v1/client/entitlements/restore' as Operation<Nothing, S.RestoreEntitlementsReply>
/** One of the caller's entitlements, which may have ended */
export const getEntitlement = 'GET /v1/client/entitlements/{entitlementId}' as Operation<{ path: { entitlementId: string } }, S.EntitlementReply>
/** Record one event, or a batch, and return its effects */
export const sendEvents = 'POST /v1/client/events' as Operation<{ body: S.SendEventsInput }, S.SendEventsReply>
/** The caller's home feed: own entries, and those of friends and of the system; newest first */
export const listFeedEntries = 'GET /v1/client/feeds' as Operation<{ query?: { since?: string; limit?: number; offset?: number } }, S.FeedEntryPage>
/** Post an entry; at most 30 an hour */
export const createFeedEntry = 'POST /v1/client/feeds' as Operation<{ body: S.CreateFeedEntryInput }, S.FeedEntryReply>
/** What was posted to a group, newest first; for its members */
export const listGroupFeed = 'GET /v1/client/feeds/group/{groupId}' as Operation<{ path: { groupId: string }; query?: { limit?: number; offset?: number } }, S.FeedEntryPage>
/** The caller's own entries, newest first */
export const listMyFeed = 'GET /v1/client/feeds/me' as Operation<{ query?: { limit?: number; offset?: number } }, S.FeedEntryPage>
/** Delete one of the caller's entries */
export const deleteFeedEntry = 'DELETE /v1/client/feeds/{entryId}' as Operation<{ path: { entryId: string } }, S.RevokeDeveloperSessionReply>
/** Every flag for the caller, by its key */
export const getFlags = 'GET /v1/client/flags' as Operation<{ header?: { "If-None-Match"?: string; "X-App-Version"?: string; "X-Platform"?: string } }, S.GetFlagsReply>
/** Flags for the caller, evaluated with attributes of the app */
export const evaluateFlags = 'POST /v1/client/flags/evaluate' as Operation<{ header?: { "X-App-Version"?: string; "X-Platform"?: string }; body?: S.EvaluateFlagsInput }, S.GetFlagsReply>
/** One flag for the caller */
export const getFlag = 'GET /v1/client/flags/{key}' as Operation<{ path: { key: string }; header?: { "If-None-Match"?: string; "X-App-Version"?: string; "X-Platform"?: string } }, S.FlagDetailReply>
/** The caller's friends, newest first, with the caller's own notes about them */
export const listFriends = 'GET /v1/client/friends' as Operation<{ query?: { status?: "accepted" | "pending_incoming" | "pending_outgoing"; online?: boolean; limit?: number; offset?: number } }, S.FriendPage>
/** Users whom the caller has blocked, newest first */
export const listBlockedUsers = 'GET /v1/client/friends/blocked' as Operation<{ query?: { limit?: number; offset?: number } }, S.BlockedUserPage>
/** The caller's code, by which others send requests; created at the first call */
export const getFriendCode = 'GET /v1/client/friends/code' as Operation<Nothing, S.FriendCodeReply>
/** Replace the code; the old one becomes invalid */
export const rotateFriendCode = 'POST /v1/client/friends/code/rotate' as Operation<Nothing, S.FriendCodeReply>
/** Requests that the caller received, or sent; newest first */
export const listFriendRequests = 'GET /v1/client/friends/requests' as Operation<{ query?: { direction?: "incoming" | "outgoing"; limit?: number; offset?: number } }, S.FriendRequestPage>
/** Send a friend request; accepts the other request if that user has sent one */
export const sendFriendRequest = 'POST /v1/client/friends/requests' as Operation<{ body?: S.SendFriendRequestInput }, S.FriendRequestReply>
/** Withdraw a request */
export const cancelFriendRequest = 'DELETE /v1/client/friends/requests/{userId}' as Operation<{ path: { userId: string } }, S.RevokeDeveloperSessionReply>
/** Accept a user's request */
export const acceptFriendRequest = 'POST /v1/client/friends/requests/{userId}/accept' as Operation<{ path: { userId: string } }, S.FriendRequestReply>
/** Decline a user's request, without notifying them */
export const declineFriendRequest = 'POST /v1/client/friends/requests/{userId}/decline' as Operation<{ path: { userId: string } }, S.DeclineFriendRequestReply>
/** Friends of friends, most mutual friends first; at most 20 */
export const listFriendSuggestions = 'GET /v1/client/friends/suggestions' as Operation<Nothing, S.FriendSuggestionList>
/** End a friendship */
export const removeFriend = 'DELETE /v1/client/friends/{userId}' as Operation<{ path: { userId: string } }, S.RevokeDeveloperSessionReply>
/** Replace the private note about a friend, which the friend does not see */
export const updateFriend = 'PATCH /v1/client/friends/{userId}' as Operation<{ path: { userId: string }; body?: S.UpdateFriendInput }, S.FriendRequestReply>
/** Unblock a user; a former friendship is not restored */
export const unblockUser = 'DELETE /v1/client/friends/{userId}/block' as Operation<{ path: { userId: string } }, S.RevokeDeveloperSessionReply>
/** Block a user, which ends a friendship and requests */
export const blockUser = 'POST /v1/client/friends/{userId}/block' as Operation<{ path: { userId: string } }, S.BlockedUserReply>
/** Create a group; the caller becomes its owner */
export const createGroup = 'POST /v1/client/groups' as Operation<{ body: S.CreateGroupInput }, S.GroupReply>
/** Join a group, public or private, by the code of an invite */
export const joinGroupByCode = 'POST /v1/client/groups/join' as Operation<{ body: S.JoinGroupByCodeInput }, S.GroupMemberReply>
/** The caller's groups with the caller's role in each, newest membership first */
export const listMyGroups = 'GET /v1/client/groups/mine' as Operation<Nothing, S.MyGroupList>
/** Public groups by a part of their name, newest first */
export const searchGroups = 'GET /v1/client/groups/search' as Operation<{ query?: { q?: string; limit?: number; offset?: number } }, S.GroupPage>
/** Delete a group with the rows that it owns, as its owner */
export const deleteGroup = 'DELETE /v1/client/groups/{groupId}' as Operation<{ path: { groupId: string } }, S.RevokeDeveloperSessionReply>
/** A public group, or one of the caller's */
export const getGroup = 'GET /v1/client/groups/{groupId}' as Operation<{ path: { groupId: string } }, S.GroupDetailReply>
/** Change a group, as its owner or an admin */
export const updateGroup = 'PATCH /v1/client/groups/{groupId}' as Operation<{ path: { groupId: string }; body?: S.UpdateGroupInput }, S.GroupDetailReply>
/** The open invites of a group, newest first, as owner or admin */
export const listGroupInvites = 'GET /v1/client/groups/{groupId}/invites' as Operation<{ path: { groupId: string }; query?: { limit?: number; offset?: number } }, S.GroupInvitePage>
/** Create an invite code to a group, as owner or admin */
export const createGroupInvite = 'POST /v1/client/groups/{groupId}/invites' as Operation<{ path: { groupId: string }; body?: S.CreateGroupInviteInput }, S.GroupInviteReply>
/** Delete an invite, as owner or admin */
export const deleteGroupInvite = 'DELETE /v1/client/groups/{groupId}/invites/{inviteId}' as Operation<{ path: { groupId: string; inviteId: string } }, S.RevokeDeveloperSessionReply>
/** Join a public group */
export const joinGroup = 'POST /v1/client/groups/{groupId}/join' as Operation<{ path: { groupId: string } }, S.GroupMemberReply>
/** Leave a group; its owner cannot */
export const leaveGroup = 'POST /v1/client/groups/{groupId}/leave' as Operation<{ path: { groupId: string } }, S.LeaveGroupReply>
/** Members of a group, longest membership first; of a private group for its members only */
export const listGroupMembers = 'GET /v1/client/groups/{groupId}/members' as Operation<{ path: { groupId: string }; query?: { limit?: number; offset?: number } }, S.GroupMemberPage>
/** Remove a member of a lower rank, as owner or admin */
export const removeGroupMember = 'DELETE /v1/client/groups/{groupId}/members/{userId}' as Operation<{ path: { groupId: string; userId: string } }, S.RevokeDeveloperSessionReply>
/** Change the role or the metadata of a member of a lower rank, as owner or admin */
export const updateGroupMember = 'PATCH /v1/client/groups/{groupId}/members/{userId}' as Operation<{ path: { groupId: string; userId: string }; body?: S.UpdateGroupMemberInput }, S.GroupMemberReply>
/** Make another member the owner; the former owner becomes an admin */
export const transferGroup = 'POST /v1/client/groups/{groupId}/transfer' as Operation<{ path: { groupId: string }; body: S.TransferGroupInput }, S.GroupDetailReply>
/** The caller's stacks, newest first */
export const listInventory = 'GET /v1/client/inventory' as Operation<{ query?: { limit?: number; offset?: number; item_type?: "consumable" | "durable" | "bundle" | "currency_pack"; category?: string } }, S.InventoryPage>
/** Grant items to a user, by a server key on behalf of them */
export const grantInventory = 'POST /v1/client/inventory/grant' as Operation<{ body: S.GrantInventoryInput }, S.InventoryList>
/** One of the caller's stacks, by its id, or an item's stack that expires soonest */
export const getInventoryItem = 'GET /v1/client/inventory/{idOrKey}' as Operation<{ path: { idOrKey: string } }, S.InventoryReply>
/** Change the caller's own metadata of a stack */
export const updateInventoryItem = 'PATCH /v1/client/inventory/{idOrKey}' as Operation<{ path: { idOrKey: string }; body?: S.UpdateInventoryItemInput }, S.InventoryReply>
/** Consume the caller's items, the soonest to expire first */
export const consumeInventoryItem = 'POST /v1/client/inventory/{idOrKey}/consume' as Operation<{ path: { idOrKey: string }; body?: S.ConsumeInventoryItemInput }, S.ConsumeInventoryItemReply>
/** Leaderboards that the caller may see, newest first, each with its current run */
export const listLeaderboards = 'GET /v1/client/leaderboards' as Operation<{ query?: { limit?: number; offset?: number } }, S.LeaderboardPage>
/** A page of a leaderboard, from an offset or around a user */
export const getLeaderboard = 'GET /v1/client/leaderboards/{idOrKey}' as Operation<{ path: { idOrKey: string }; query?: { run?: string; scope?: string; around?: string; limit?: number; offset?: number } }, S.GetLeaderboardReply>
/** The caller's entry */
export const getMyLeaderboardEntry = 'GET /v1/client/leaderboards/{idOrKey}/me' as Operation<{ path: { idOrKey: string }; query?: { run?: string } }, S.MyLeaderboardEntryReply>
/** Submit a score of the caller */
export const submitLeaderboardScore = 'POST /v1/client/leaderboards/{idOrKey}/scores' as Operation<{ path: { idOrKey: string }; body: S.SubmitLeaderboardScoreInput }, S.SubmitLeaderboardScoreReply>
/** Active leagues, oldest first, with the caller's place and newest result */
export const listLeagues = 'GET /v1/client/leagues' as Operation<Nothing, S.LeagueList>
/** A league with the caller's cohort in order of rank */
export const getLeague = 'GET /v1/client/leagues/{idOrKey}' as Operation<{ path: { idOrKey: string } }, S.LeagueDetailReply>
/** The caller's results, newest first */
export const listLeagueHistory = 'GET /v1/client/leagues/{idOrKey}/history' as Operation<{ path: { idOrKey: string }; query?: { limit?: number; offset?: number } }, S.LeagueHistoryPage>
/** Mark the caller's newest result as seen */
export const markLeagueResultSeen = 'POST /v1/client/leagues/{idOrKey}/seen' as Operation<{ path: { idOrKey: string } }, S.MarkLeagueResultSeenReply>
/** The caller's files, newest first; all files for a server key without a user */
export const listMedia = 'GET /v1/client/media' as Operation<{ query?: { limit?: number; offset?: number; folder_id?: string } }, S.MediaPage>
/** A public catalog of files, for apps without a session */
export const getMediaCatalog = 'GET /v1/client/media/catalogs/{slug}' as Operation<{ path: { slug: string }; header?: { "If-None-Match"?: string } }, S.MediaCatalogReply>
/** Commit an upload that has arrived; again is the same */
export const commitMediaUpload = 'POST /v1/client/media/commit' as Operation<{ body: S.CommitMediaUploadInput }, S.MediaReply>
/** Sign a URL to download or upload a file by its key */
export const presignMediaUpload = 'POST /v1/client/media/presign' as Operation<{ body: S.PresignMediaUploadInput }, S.PresignMediaUploadReply>
/** Register an upload */
export const uploadMedia = 'POST /v1/client/media/upload' as Operation<{ body: S.UploadMediaInput }, S.UploadMediaReply>
/** Delete a file of the caller: its bytes are gone before the answer */
export const deleteMedia = 'DELETE /v1/client/media/{assetId}' as Operation<{ path: { assetId: string } }, S.DeleteRowReply>
/** A file of the caller */
export const getMedia = 'GET /v1/client/media/{assetId}' as Operation<{ path: { assetId: string } }, S.MediaReply>
/** The caller's conversations, newest activity first */
export const listConversations = 'GET /v1/client/messaging/conversations' as Operation<{ query?: { archived?: boolean; limit?: number; offset?: number } }, S.ConversationPage>
/** Create a conversation; the caller is added */
export const createConversation = 'POST /v1/client/messaging/conversations' as Operation<{ body: S.CreateConversationInput }, S.ConversationReply>
/** A conversation of the caller */
export const getConversation = 'GET /v1/client/messaging/conversations/{conversationId}' as Operation<{ path: { conversationId: string } }, S.ConversationReply>
/** Rename a conversation; mute or archive it for the caller only */
export const updateConversation = 'PATCH /v1/client/messaging/conversations/{conversationId}' as Operation<{ path: { conversationId: string }; body?: S.UpdateConversationInput }, S.ConversationReply>
/** Messages that are not replies, or the replies to one; newest first */
export const listMessages = 'GET /v1/client/messaging/conversations/{conversationId}/messages' as Operation<{ path: { conversationId: string }; query?: { parent_message_id?: string; limit?: number; offset?: number } }, S.MessagePage>
/** Send a message; at most 60 a minute */
export const sendMessage = 'POST /v1/client/messaging/conversations/{conversationId}/messages' as Operation<{ path: { conversationId: string }; body: S.SendMessageInput }, S.MessageReply>
/** Delete a message, as its sender or the owner of the group conversation */
export const deleteMessage = 'DELETE /v1/client/messaging/conversations/{conversationId}/messages/{messageId}' as Operation<{ path: { conversationId: string; messageId: string } }, S.RevokeDeveloperSessionReply>
/** Edit a message within 15 minutes, as its sender */
export const updateMessage = 'PATCH /v1/client/messaging/conversations/{conversationId}/messages/{messageId}' as Operation<{ path: { conversationId: string; messageId: string }; body?: S.UpdateMessageInput }, S.MessageReply>
/** Remove a reaction, if there is one */
export const removeReaction = 'DELETE /v1/client/messaging/conversations/{conversationId}/messages/{messageId}/reactions' as Operation<{ path: { conversationId: string; messageId: string }; query: { emoji: string } }, S.ReactionList>
/** Reactions to a message by emoji, the oldest first */
export const listReactions = 'GET /v1/client/messaging/conversations/{conversationId}/messages/{messageId}/reactions' as Operation<{ path: { conversationId: string; messageId: string } }, S.ReactionList>
/** React to a message; at most 20 different emojis on one message */
export const addReaction = 'POST /v1/client/messaging/conversations/{conversationId}/messages/{messageId}/reactions' as Operation<{ path: { conversationId: string; messageId: string }; body: S.AddReactionInput }, S.ReactionList>
/** Read receipts of a message */
export const getMessageReceipts = 'GET /v1/client/messaging/conversations/{conversationId}/messages/{messageId}/receipts' as Operation<{ path: { conversationId: string; messageId: string } }, S.MessageReceiptsReply>
/** Add a user to a group conversation */
export const addParticipants = 'POST /v1/client/messaging/conversations/{conversationId}/participants' as Operation<{ path: { conversationId: string }; body: S.TransferGroupInput }, S.AddParticipantsReply>
/** Leave a group conversation */
export const leaveConversation = 'DELETE /v1/client/messaging/conversations/{conversationId}/participants/me' as Operation<{ path: { conversationId: string } }, S.RevokeDeveloperSessionReply>
/** Remove a participant, as the owner of the group conversation */
export const removeParticipant = 'DELETE /v1/client/messaging/conversations/{conversationId}/participants/{userId}' as Operation<{ path: { conversationId: string; userId: string } }, S.RevokeDeveloperSessionReply>
/** Mark a conversation as read */
export const markConversationRead = 'POST /v1/client/messaging/conversations/{conversationId}/read' as Operation<{ path: { conversationId: string } }, S.MarkConversationReadReply>
/** Announce that the caller is typing; nothing is stored */
export const sendTyping = 'POST /v1/client/messaging/conversations/{conversationId}/typing' as Operation<{ path: { conversationId: string } }, S.SendTypingReply>
/** Messages of the caller's conversations by a part of their text, newest first */
export const searchMessages = 'GET /v1/client/messaging/messages/search' as Operation<{ query: { q: string; limit?: number; offset?: number } }, S.MessagePage>
/** Unread messages and mentions, in total and by conversation */
export const getUnreadCounts = 'GET /v1/client/messaging/unread' as Operation<{ query?: { limit?: number } }, S.UnreadCountsReply>
/** The caller's reports, newest first */
export const listModerationReports = 'GET /v1/client/moderation/reports' as Operation<{ query?: { limit?: number; offset?: number } }, S.ModerationReportPage>
/** Report content or a user; at most 30 a day */
export const createModerationReport = 'POST /v1/client/moderation/reports' as Operation<{ body: S.CreateModerationReportInput }, S.CreateModerationReportReply>
/** The newest active flow, with the caller's progress */
export const getOnboarding = 'GET /v1/client/onboarding' as Operation<Nothing, S.GetOnboardingReply>
/** Complete the current step and go to the next */
export const advanceOnboarding = 'POST /v1/client/onboarding/{flowId}/advance' as Operation<{ path: { flowId: string }; body?: S.AdvanceOnboardingInput }, S.AdvanceOnboardingReply>
/** Complete a flow */
export const completeOnboarding = 'POST /v1/client/onboarding/{flowId}/complete' as Operation<{ path: { flowId: string } }, S.AdvanceOnboardingReply>
/** Skip a flow */
export const skipOnboarding = 'POST /v1/client/onboarding/{flowId}/skip' as Operation<{ path: { flowId: string } }, S.AdvanceOnboardingReply>
/** Start or restart a flow */
export const startOnboarding = 'POST /v1/client/onboarding/{flowId}/start' as Operation<{ path: { flowId: string } }, S.AdvanceOnboardingReply>
/** The caller's purchases, newest first */
export const listPurchases = 'GET /v1/client/purchases' as Operation<{ query?: { limit?: number; offset?: number } }, S.PurchasePage>
/** One of the caller's purchases */
export const getPurchase = 'GET /v1/client/purchases/{purchaseId}' as Operation<{ path: { purchaseId: string } }, S.PurchaseReply>
/** Report that a message was opened; the first time counts */
export const reportPushOpened = 'POST /v1/client/push/deliveries/{deliveryId}/opened' as Operation<{ path: { deliveryId: string } }, S.ReportPushOpenedReply>
/** Report that a device has received a message; the first time counts */
export const reportPushReceived = 'POST /v1/client/push/deliveries/{deliveryId}/received' as Operation<{ path: { deliveryId: string } }, S.ReportPushReceivedReply>
/** The caller's inbox, newest first */
export const listPushInbox = 'GET /v1/client/push/inbox' as Operation<{ query?: { unread?: boolean; cursor?: string; limit?: number } }, S.PushInboxCursorPage>
/** Mark all items as read */
export const markPushInboxRead = 'POST /v1/client/push/inbox/read-all' as Operation<Nothing, S.MarkPushInboxReadReply>
/** How many items of the inbox are unread */
export const getPushInboxUnreadCount = 'GET /v1/client/push/inbox/unread-count' as Operation<Nothing, S.PushInboxUnreadCountReply>
/** Delete an item */
export const deletePushInboxItem = 'DELETE /v1/client/push/inbox/{inboxItemId}' as Operation<{ path: { inboxItemId: string } }, S.RevokeDeveloperSessionReply>
/** Mark an item as read */
export const markPushInboxItemRead = 'POST /v1/client/push/inbox/{inboxItemId}/read' as Operation<{ path: { inboxItemId: string } }, S.PushInboxReply>
/** The caller's preferences, with all categories of the project */
export const getPushPreferences = 'GET /v1/client/push/preferences' as Operation<Nothing, S.PushPreferencesReply>
/** Replace the caller's preferences */
export const setPushPreferences = 'PUT /v1/client/push/preferences' as Operation<{ body?: S.SetPushPreferencesInput }, S.PushPreferencesReply>
/** Open a WebSocket */
export const connectRealtime = 'GET /v1/client/realtime' as Operation<{ query?: { ticket?: string } }, undefined>
/** Listen to channels as server-sent events */
export const streamRealtime = 'GET /v1/client/realtime/stream' as Operation<{ query: { ticket?: string; channels: string; since?: string } }, RawReply>
/** Get a ticket for one connection */
export const createRealtimeTicket = 'POST /v1/client/realtime/tickets' as Operation<Nothing, S.RealtimeTicketReply>
/** Claim a code; case, spaces and dashes do not matter */
export const claimReferral = 'POST /v1/client/referrals/claim' as Operation<{ body: S.ClaimReferralInput }, S.ClaimReferralReply>
/** The caller's code to share, created at the first call, with its statistics */
export const getMyReferral = 'GET /v1/client/referrals/me' as Operation<Nothing, S.MyReferralReply>
/** Users whom the caller referred, newest first */
export const listMyReferralClaims = 'GET /v1/client/referrals/me/claims' as Operation<{ query?: { limit?: number; offset?: number } }, S.MyReferralClaimPage>
/** A code for an invitation screen, before sign-in */
export const getReferral = 'GET /v1/client/referrals/{code}' as Operation<{ path: { code: string } }, S.ReferralReply>
/** The published reviews of a subject, with their summary */
export const listReviews = 'GET /v1/client/reviews' as Operation<{ query: { subject_type: string; subject_id?: string; sort?: "newest" | "helpful" | "rating"; rating?: number; limit?: number; offset?: number } }, S.ListReviewsReply>
/** Write the caller's review of a subject; at most 20 a day */
export const writeReview = 'PUT /v1/client/reviews' as Operation<{ header?: { "Accept-Language"?: string; "X-App-Version"?: string }; body: S.WriteReviewInput }, S.ReviewReply>
/** The caller's reviews in every status, newest first */
export const listMyReviews = 'GET /v1/client/reviews/mine' as Operation<{ query?: { limit?: number; offset?: number } }, S.ReviewPage>
/** Whether the caller may be asked for a review in the app store now */
export const getReviewPrompt = 'GET /v1/client/reviews/prompt' as Operation<Nothing, S.ReviewPromptReply>
/** Note that the caller was asked for a review in the app store */
export const noteReviewPrompt = 'POST /v1/client/reviews/prompt-shown' as Operation<Nothing, S.NoteReviewPromptReply>
/** Delete one of the caller's reviews */
export const deleteReview = 'DELETE /v1/client/reviews/{reviewId}' as Operation<{ path: { reviewId: string } }, S.RevokeDeveloperSessionReply>
/** Take the vote back */
export const unvoteReview = 'DELETE /v1/client/reviews/{reviewId}/helpful' as Operation<{ path: { reviewId: string } }, S.UnvoteReviewReply>
/** Vote for a review as helpful */
export const voteForReview = 'POST /v1/client/reviews/{reviewId}/helpful' as Operation<{ path: { reviewId: string } }, S.UnvoteReviewReply>
/** Report a review; at most 30 reports a day */
export const reportReview = 'POST /v1/client/reviews/{reviewId}/report' as Operation<{ path: { reviewId: string }; body: S.ReportReviewInput }, S.CreateModerationReportReply>
/** The caller's roles and permissions */
export const getMyRoles = 'GET /v1/client/roles' as Operation<Nothing, S.MyRolesReply>
/** Whether the caller has a permission, in the whole project or in a group */
export const checkRole = 'GET /v1/client/roles/check' as Operation<{ query: { permission: string; group_id?: string } }, S.CheckRoleReply>
/** Start an app session; with an id from the client a retry is idempotent */
export const startAppSession = 'POST /v1/client/sessions/start' as Operation<{ body?: S.StartAppSessionInput }, S.UserAppSessionReply>
/** End a session; ending it again returns the same row */
export const endAppSession = 'POST /v1/client/sessions/{sessionId}/end' as Operation<{ path: { sessionId: string }; body?: S.EndAppSessionInput }, S.UserAppSessionReply>
/** Heartbeat of a session: every 60 seconds in the foreground */
export const heartbeatAppSession = 'POST /v1/client/sessions/{sessionId}/heartbeat' as Operation<{ path: { sessionId: string } }, S.UserAppSessionReply>
/** The stores that the caller sees, by sort_order */
export const listStores = 'GET /v1/client/stores' as Operation<{ query?: { limit?: number; offset?: number } }, S.StorePage>
/** A store with its offers as the caller sees them */
export const getStore = 'GET /v1/client/stores/{idOrKey}' as Operation<{ path: { idOrKey: string } }, S.StoreDetailReply>
/** Buy some units of an offer */
export const purchaseOffer = 'POST /v1/client/stores/{idOrKey}/purchase' as Operation<{ path: { idOrKey: string }; body: S.PurchaseOfferInput }, S.PurchaseOfferReply>
/** The caller's streaks */
export const listStreaks = 'GET /v1/client/streaks' as Operation<{ query?: { include?: "all" } }, S.StreakList>
/** One of the caller's streaks with its newest periods, newest first */
export const getStreak = 'GET /v1/client/streaks/{idOrKey}' as Operation<{ path: { idOrKey: string }; query?: { history?: number } }, S.StreakDetailReply>
/** End the current pause and delete future ones */
export const resumeStreak = 'DELETE /v1/client/streaks/{idOrKey}/pause' as Operation<{ path: { idOrKey: string } }, S.RevokeDeveloperSessionReply>
/** Pause one of the caller's streaks, both dates included */
export const pauseStreak = 'PUT /v1/client/streaks/{idOrKey}/pause' as Operation<{ path: { idOrKey: string }; body: S.PauseStreakInput }, S.StreakReply>
/** Count one act for one of the caller's streaks, now */
export const qualifyStreak = 'POST /v1/client/streaks/{idOrKey}/qualify' as Operation<{ path: { idOrKey: string } }, S.StreakReply>
/** What has changed since a checkpoint */
export const pull = 'POST /v1/client/sync/pull' as Operation<{ body: S.PullInput }, S.PullReply>
/** Apply what a client has written */
export const push = 'POST /v1/client/sync/push' as Operation<{ header?: { "X-Group-Context"?: string }; body: S.PushInput }, S.PushReply>
/** Forget a client: its next pull begins from nothing */
export const reset = 'POST /v1/client/sync/reset' as Operation<{ body: S.ResetInput }, S.ResetReply>
/** The checkpoint of a client, and how much there is to pull */
export const getStatus = 'GET /v1/client/sync/status' as Operation<{ query: { client_id: string } }, S.StatusReply>
/** Delete the caller's account with all of its data */
export const deleteMe = 'DELETE /v1/client/users/me' as Operation<{ query?: { confirm?: string; code?: string }; body?: S.DeleteMeInput }, S.RevokeDeveloperSessionReply>
/** The caller's profile */
export const getMe = 'GET /v1/client/users/me' as Operation<Nothing, S.MeReply>
/** Change the caller's profile */
export const updateMe = 'PATCH /v1/client/users/me' as Operation<{ body?: S.UpdateMeInput }, S.MeReply>
/** All data of the caller, as NDJSON; once in 24 hours */
export const exportMe = 'GET /v1/client/users/me/export' as Operation<Nothing, RawReply>
/** Unregister a device of the caller; the response is the same for other devices */
export const deletePushToken = 'DELETE /v1/client/users/me/push-token' as Operation<{ query?: { token?: string }; body?: S.DeletePushTokenInput }, S.DeletePushTokenReply>
/** Register a device for push; a token belongs to whoever registered it last */
export const registerPushToken = 'POST /v1/client/users/me/push-token' as Operation<{ body: S.RegisterPushTokenInput }, S.RegisterPushTokenReply>
/** Users by the beginning of their name, if the project allows it */
export const searchUsers = 'GET /v1/client/users/search' as Operation<{ query?: { q?: string; limit?: number } }, S.UserDetailList>
/** A user's public profile */
export const getUser = 'GET /v1/client/users/{userId}' as Operation<{ path: { userId: string } }, S.UserDetailReply>
/** Achievements that another user has unlocked */
export const listUserAchievements = 'GET /v1/client/users/{userId}/achievements' as Operation<{ path: { userId: string }; query?: { limit?: number; offset?: number } }, S.UserAchievementPage>
/** The caller's XP and level */
export const getXp = 'GET /v1/client/xp' as Operation<Nothing, S.XpStandingReply>
/** Give or take XP, with a server key only */
export const awardXp = 'POST /v1/client/xp/award' as Operation<{ body: S.AwardXpInput }, S.XpHistoryReply>
/** The caller's ledger of XP, newest first */
export const listXpHistory = 'GET /v1/client/xp/history' as Operation<{ query?: { cursor?: string; limit?: number } }, S.XpHistoryCursorPage>
/** The table of levels */
export const listXpLevels = 'GET /v1/client/xp/levels' as Operation<Nothing, S.XpLevelList>
