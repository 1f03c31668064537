/**
 * What each error code means and what its caller does, a line each: `code | meaning | what to do`. A code that means something else under one status has a
 * line of its own that begins with the status. `npm run docs` puts them into docs/errors.md, and its check fails on a code without a line.
 */
const refusals = `
ACCESS_DENIED | The developer refused the request of this device. | Stop polling; start again only if the person asks for it.
AccessDenied | A policy forbids this to the caller: a file in the folder of another user, a bucket without the server key. | Do not retry; the code is that of the storage API of Supabase.
ALREADY_MEMBER | The person is a member of the organization already. | Nothing has to be done; change the role of the member instead.
ALREADY_PROVISIONED | The database of the project is ready. | Use the project.
ALREADY_REFUNDED | The purchase was refunded before. | Nothing is left to do.
ALREADY_RESOLVED | The item of the moderation queue was decided before. | Read the item again and show its decision.
ALREADY_REVERSED | The transaction was reversed before. | Nothing has to be done.
ALREADY_RUNNING | The same work runs for this project, or waits for its confirmation. | Poll, confirm or cancel the operation that runs.
ALREADY_SCHEDULED | The campaign is scheduled already, or another one has this workflow_id. | Read that campaign; do not send it twice.
ALREADY_SUBSCRIBED | The project has a subscription. | Change it in the portal of the billing provider.
ASSET_IN_USE | A catalog shows the file. | Take the file out of the catalog, then delete it.
AUDIENCE_EMPTY | Nobody is in the audience. | Check the segment or the list of users.
AUDIENCE_NOT_CONFIGURED | The project does not name the audience that tokens of this provider must have. | Set the field that details name in the project.
AUTHORIZATION_PENDING | The developer has not decided yet. | Poll again after the interval.
BALANCE_LIMIT_EXCEEDED | The balance would be higher than the currency permits. | Credit less, or raise max_balance of the currency.
BATCH_TOO_LARGE | The batch has more items than the route takes. | Split it; details or message give the limit.
BILLING_CANCEL_FAILED | The billing provider did not cancel the subscription; nothing was changed. | Try again later.
BILLING_NOT_CONFIGURED | The installation has no billing provider. | The operator sets BILLING_MODULE.
BUCKET_EXISTS | There is a bucket of this name, or the name is kept for the program. | Use it, or choose another name.
BUCKET_NOT_EMPTY | The bucket has files. | Empty it first.
BUCKET_NOT_FOUND | There is no bucket of this name. | Check the name; apps use media, or a bucket that the project has made.
BucketAlreadyExists | There is a bucket of this name. | Use it, or choose another name; the code is that of the storage API of Supabase.
BUNDLE_CYCLE | A bundle would contain itself, or bundles more than three deep. | Change the contents.
CAMPAIGN_LOCKED | The state of the campaign does not allow this. | Read the campaign; cancel it or make a new one.
CHALLENGE_NOT_ACTIVE | The challenge has ended. | Read the list of challenges again.
CHECKPOINT_EXPIRED | The client was not given this checkpoint, or it is older than 30 days. | Pull with the checkpoint null and replace what is held.
CODE_VERIFIER_INVALID | The verifier is not the one whose challenge began this sign-in; its code is spent. | Keep the verifier where the sign-in began, and begin again.
COLLECTION_LIMIT_REACHED | The project has 200 collections. | Delete one that is not used.
COLLECTION_NOT_FOUND | There is no collection of this name, or the caller may not see it. | Check the name.
COLLECTION_REFERENCED | Columns of other collections refer to this one. | Drop these columns first.
COLUMN_LIMIT_REACHED | The collection has 100 columns. | Drop a column, or use a jsonb column for several values.
CONFIRMATION_EXPIRED | The apply waited 24 hours for its confirmation and has ended. | Plan and apply again.
CONFIRMATION_REQUIRED | This cannot be undone and needs a confirmation. | Send confirm with the value that message names.
CONFIRM_MISMATCH | confirm is not the plan_hash, or the apply began with other options. | Send the plan_hash of the plan that you read, or cancel the operation.
CONFLICT | The state of the row does not allow this, or another row has the same unique value. | Read the row, decide again, then retry; details name the field or the current row.
CONTENT_REJECTED | A moderation rule of the project rejects the content. | Ask the user to change it; the same content is rejected again.
CONVERSATION_IS_DIRECT | The participants of a direct conversation are fixed. | Create a group conversation.
CONVERSATION_NOT_FOUND | There is no such conversation for the caller. | Read the list of conversations again.
CURRENCY_IN_USE | Users have balances of the currency, or items or offers a price in it. | Set is_active to false instead.
CURRENCY_NOT_ACCEPTED | The offer has no price in this currency. | Pay in one of its prices.
DEFAULT_REQUIRED | Rows without a value would break a column that is not nullable. | Give the column a default.
DELEGATION_NOT_ALLOWED | An operator token may never do this, whatever its scopes. | Use a developer's session.
DELIVERY_NOT_REPLAYABLE | Only a delivery that is failed or dlq can be sent again. | Wait for its retries, or send a test.
DISPOSABLE_EMAIL | The address belongs to a provider of throw-away addresses. | Use a permanent address.
DOMAIN_IN_USE | The sender of the project is on this domain. | Change default_from_email first.
DOMAIN_TAKEN | Another project has proved that it owns the domain. | Detach it there, or use another domain.
EDIT_WINDOW_CLOSED | A message can be edited for 15 minutes. | Send a new message.
EMAIL_EXISTS | An account has this address. | Sign in instead.
EMAIL_NOT_VERIFIED | This needs a verified address of the developer. | Sign in with a code by mail, which verifies the address.
EMBEDDINGS_NOT_CONFIGURED | A search by text needs a provider of embeddings. | Register the AI provider openai, or send a vector.
EntityTooLarge | The file is larger than its bucket, or the program, takes. | Send a smaller file; the code is that of the storage API of Supabase.
EVENT_BLOCKED | The definition of this event refuses it. | Do not send the event, or make its definition active.
EVENT_ID_CONFLICT | Another user's event has this id. | Make a new id for each event.
EVENT_TOO_OLD | occurred_at is more than 30 days ago. | Drop the event.
EXPIRED_TOKEN | The device code is unknown, used or expired. | Start the device sign-in again.
404 FETCH_FAILED | There is no active item with this id or key. | Read the catalog again.
FLOW_EXPIRED | The code of a sign-in by redirect is older than five minutes. | Begin again.
FLOW_NOT_FOUND | No sign-in by redirect has this code, or it was exchanged before. | Begin again; exchange each code once.
FOLDER_NOT_EMPTY | The folder has files or folders. | Move or delete these first.
FORBIDDEN | A policy, a trigger or a setting of the project forbids this to the caller. | Do not retry; ask the developer of the project for the right.
FREE_TIER_LIMIT_REACHED | A free project may not store more files. | Delete files, or subscribe.
FRIEND_LIMIT_REACHED | One of the two users has as many friends, requests or blocks as are allowed. | Remove some first.
FUNCTION_DOMAINS_ATTACHED | Functions of the project are served under a domain. | Detach the domain first.
GRAPHQL_DISABLED | GraphQL is off in this project. | Set graphql_enabled with PATCH on the project.
GRAPHQL_UNAVAILABLE | The schema of GraphQL cannot be served now. | Try again after Retry-After.
GROUP_CONTEXT_REQUIRED | Rows of this collection belong to a group. | Send X-Group-Context with the id of the group.
GROUP_FULL | The group would have more members than it may have. | Join another group, or raise max_members.
GROUP_LIMIT_REACHED | A user is in at most 50 groups. | Leave one first.
GROUP_NOT_PRIVATE | Only a private group may own rows. | Make the group private, or name another one.
GROUP_OWNS_ROWS | A group that owns rows stays private. | Delete its rows first.
GROUP_ROLE_FORBIDDEN | The caller's role in the group is too low. | Ask an owner or an admin of the group.
IDEMPOTENCY_CONFLICT | The Idempotency-Key was used with another body. | Send the first body, or a new key for a new request.
IDEMPOTENCY_REPLAY_GONE | The row that this Idempotency-Key created was deleted. | Use a new key to create another one.
IDENTITY_IN_USE | Another user has this identity. | Sign in with it, and merge if details.merge_available is true.
IDENTITY_NOT_FOUND | The identity is not linked to the user. | Read the identities of the user again.
INDEX_LIMIT_REACHED | The collection has 20 indexes, unique columns included. | Drop an index that is not used.
INSUFFICIENT_FUNDS | The balance does not cover the amount. | Show the balance of details; earn or buy before the next attempt.
INSUFFICIENT_QUANTITY | The user has fewer of the item than asked for. | Read the inventory again.
INVALID_ATTACHMENTS | attachments is not a list of at most 10 valid attachments. | Correct the field that details name.
INVALID_BUCKET_NAME | The name of the bucket has other characters, or too many. | Use 1 to 100 letters, digits, _, . and -.
INVALID_BODY | The body is not valid JSON of the expected form. | Correct the field that details name.
INVALID_CHECKPOINT | The checkpoint is not one that a pull answers. | Send the last checkpoint, or null.
INVALID_COLUMN | A column that the request names does not exist or cannot be used so. | Check the definition of the collection.
INVALID_CONFIG | The config of the integration is not valid. | Correct the field that details name.
INVALID_CONFLICT_TARGET | No unique index has exactly the columns of conflict_target. | Name the columns of a unique index.
INVALID_CONVERSATION_ID | The id of the conversation is not a uuid. | Send an id that the API answered.
INVALID_CREDENTIALS | The address or the password is wrong. | Ask the developer again.
INVALID_DEVELOPER_TOKEN | The developer's token is missing, expired, revoked or wrong. | Refresh the token, or sign in again.
INVALID_ID | An id in the path is not a uuid. | Send an id that the API answered.
INVALID_INPUT | A parameter, header or field has a wrong form or value. | Correct the field that details name.
INVALID_JSON | The body, or a JSON value of a row, is not JSON within the bounds. | Correct the JSON; [Request bodies](bodies.md) has the bounds.
INVALID_METHOD | method is neither GET nor PUT. | Send one of the two.
INVALID_PARENT | parent_message_id is no uuid, or not a message of this conversation. | Name a message of the same conversation.
INVALID_PAYLOAD | The body of the message or conversation is not valid. | Correct the field that details name.
INVALID_PERIOD | period is not one that the route knows. | Use a value that /docs lists.
INVALID_POLICY | The owner scope does not allow this pair of policies. | Choose a pair of [collections](collections.md).
INVALID_SENDER | The sender is not on a verified sending domain of the project. | Verify the domain, or use another sender.
INVALID_SIGNATURE | The signature or the secret of an incoming webhook is wrong. | Compare the secret at the provider with that of the integration.
INVALID_SINCE | since is not a time. | Send ISO 8601 with an offset.
INVALID_SQL | Postgres does not take the query, or it failed. | Correct it; details has the position.
INVALID_TIMEZONE | The time zone is not known. | Send a name of the IANA database, such as Europe/Berlin.
INVALID_TOKEN | The token or link is wrong, used or expired. | Sign in again, or request a new link.
INVALID_TRANSITION | The review does not go from details.from to details.to. | Read the review again.
INVALID_UNTIL | until is not a time. | Send ISO 8601 with an offset.
INVALID_USER_ID | The id of the user is not a uuid. | Send an id that the API answered.
INVALID_VECTOR | The vector has another length than the column, or no numbers. | Send a vector of the column's dimensions.
InvalidBucketName | A bucket may not have this name. | Use letters, digits, underscores, dots and hyphens; the code is that of the storage API of Supabase.
InvalidMimeType | The bucket, or the program, takes no files of this type. | Send another type; the code is that of the storage API of Supabase.
INVITE_EMAIL_MISMATCH | The invite is for another address. | Sign in with the address that was invited.
INVITE_INVALID | The invite code is mistyped, expired, revoked or used. | Ask for a new code.
INVITE_NOT_PENDING | The invite was accepted, revoked or has expired. | Ask for a new invite.
INVITE_REQUIRED | Signing up, or creating projects, needs an invite. | Enter an invite code, or ask for access at the URL of details.
ITEMS_CONSUMED | The user does not have all that the purchase gave; details.missing lists it. | Send force to take what is there.
ITEM_IN_USE | Users have the item, a bundle contains it, or a store offers it. | Set is_active to false instead.
ITEM_NOT_FOUND | There is no such item, or the user does not have it. | Read the catalog or the inventory again.
KeyAlreadyExists | Another file has this key. | Send upsert, or choose another key; the code is that of the storage API of Supabase.
KEY_IN_USE | Another file has this key. | Choose another key, or replace the file where the route allows it.
LAST_IDENTITY | This is the only way in which the user signs in. | Link another one first.
LAST_OWNER | An organization needs an owner. | Make somebody else owner first.
LEADERBOARD_IMMUTABLE | scoring, sort and period are fixed once there are entries. | Create another leaderboard.
LEADERBOARD_NOT_ACTIVE | The leaderboard takes no scores now. | Read the leaderboard; try in its next run.
LEADERBOARD_NOT_MANUAL | The scores of this leaderboard come from events or from another source. | Send the events instead.
LEAGUE_IMMUTABLE | The period is fixed once a run has members. | Create another league.
LIMIT_REACHED | The owner has as many of these as are allowed; details.limit is the number. | Delete some that are not used.
LINK_REQUIRED | An account has this address, and the provider is not linked to it. | Sign in the way the account was made, then link the provider.
MAX_OWNED_REACHED | The user has as many of the item as one may own. | Do not grant more, or raise max_owned.
MERGE_NOT_ALLOWED | Only another user who is purely anonymous can be merged. | Keep both users.
MESSAGE_NOT_FOUND | There is no such message for the caller. | Read the messages again.
MIME_NOT_ALLOWED | Files of this type are not stored, or not processed. | Send one of the types of [media](media.md).
MISSING_PROJECT | The URL of an incoming webhook lacks project_id. | Correct the URL at the provider.
MONETIZATION_NOT_CONFIGURED | The integration revenuecat is not connected, or is off. | Connect it, or switch it on.
MONETIZATION_NOT_MIGRATED | The database of the project is being migrated. | Try again in a moment.
NOTHING_TO_RESTORE | No streak of the user ended within the restore window. | Nothing can be restored.
NOT_A_GROUP_MEMBER | The caller is not a member of the group. | Join the group first.
NOT_A_MEMBER | Only members read the group's feed and post to it. | Join the group first.
NOT_A_PARTICIPANT | The caller does not take part in the conversation. | Ask a participant to add the user.
NOT_CONFIGURED | The installation or the project has no such provider, or the provider lacks its secret. | Connect it with POST .../integrations.
NOT_CONSUMABLE | Only items of type consumable can be consumed. | Check item_type first.
NOT_ELIGIBLE | The challenge is for other users, or only users who had the item review it. | Do not offer it to this user.
NOT_FOUND | There is no such thing, or the caller may not see it. | Check the id and the path; do not retry.
NOT_NULL_VIOLATION | A column that needs a value has none. | Send the column that details name.
NO_SUBSCRIPTION | The project has no subscription. | Subscribe first, with .../billing/checkout.
NoSuchBucket | There is no bucket of this name, or the caller does not see it. | Check the name; the code is that of the storage API of Supabase.
NoSuchKey | There is no file with this key. | Check the path; the code is that of the storage API of Supabase.
OAUTH_STATE_INVALID | A provider sent a browser back with a state that belongs to no sign-in of this project. | Begin again in the app.
OFFER_IN_USE | Users have bought the offer. | Set is_active to false instead.
OFFER_NOT_AVAILABLE | The offer cannot be bought now; details.reason says why. | Read the store again.
OFFER_NOT_FOUND | The store has no such offer. | Read the store again.
OPERATION_NOT_CANCELLABLE | The operation has begun or ended. | Poll it until it ends.
OTP_INVALID | The code is wrong, used, locked or expired. | Ask the user again, or request a new code.
OUT_OF_STOCK | Fewer units are left than asked for; details.remaining says how many. | Buy fewer, or none.
OWNER_CANNOT_LEAVE | The owner of a group cannot leave it. | Transfer the group first, or delete it.
OWNER_SCOPE_IMMUTABLE | The owner scope of a collection is fixed. | Create another collection.
PACKAGE_NOT_INDEPENDENTLY_ADOPTABLE | A package is adopted together with its offering. | Name the offering.
PARENT_NOT_FOUND | The message that is replied to does not exist. | Read the messages again.
PAUSE_OVERLAP | The pause overlaps another one. | End the other one first, or choose other dates.
PAYLOAD_TOO_LARGE | The body is longer than the route takes. | Send less at once; [Request bodies](bodies.md) has the limits.
PERIOD_IMMUTABLE | Users have this streak, so its period is fixed. | Define another streak.
PERSONAL_ORGANIZATION | A personal organization belongs to its account as long as that exists. | Use an organization that is shared.
PLAN_BLOCKED | A row of the plan cannot be applied; details say which and why. | Correct that row and plan again.
PLAN_CHANGED | The definitions or the provider have changed since the plan. | Plan again, and read the new plan.
PRESIGN_PUT_NOT_AVAILABLE | Free projects register uploads before they send bytes. | Use POST /v1/client/media/upload.
PRICE_CHANGED | The price is not expected_price any more. | Show details.current_price and ask again.
PROJECTS_EXIST | Projects would lose their owner or their organization. | Delete or transfer them first.
PROJECT_NOT_NAMED | An address without a key does not say of which project it is. | Give createClient the root of the project, {root_url}/p/&lt;project id&gt;.
PROJECT_FORBIDDEN | The project is outside of the developer's organizations or of the token's projects. | Use an account or a token that has it.
PROVIDER_DISABLED | The provider is switched off in this project. | Offer another way to sign in; administrators switch it on.
PROVIDER_FAILED | A provider answered an error, or nothing of use. | Try again later; check the provider's credentials if it persists.
PROVIDER_HAS_PROMPTS | Prompts use this AI provider. | Change or delete the prompts first.
PROVIDER_HAS_USERS | Users sign in with this provider, whose issuer would change. | Switch it off, and give the other issuer another name.
PROVIDER_NOT_CONFIGURED | The project or the server has no provider for this. | Connect one, or offer another way to sign in.
PROVIDER_NOT_REGISTERED | The prompt names an AI provider without a key. | Register the provider first.
PROVIDER_READ_FAILED | The subscription provider could not be read; details have its status. | Try again later, or correct the key.
PROVIDER_TIMEOUT | A provider did not answer in time. | Try again later.
PROVIDER_UNKNOWN | There is no provider of this name, or its credentials cannot be tested. | Use a name that /docs lists.
PROVISIONING_IN_PROGRESS | The database of the project is being made. | Poll provisioning-status, then delete.
PROVISIONING_REVOKED | The account may no longer create projects. | Contact the operator.
PURCHASE_LIMIT_REACHED | The user may buy fewer units in this period; details.remaining says how many. | Buy fewer, or later.
PUSH_NOT_CONFIGURED | The project has no push provider. | Connect apns or fcm with POST .../integrations.
QUALIFY_NOT_ALLOWED | Only events qualify this streak. | Post the event instead.
RATE_LIMITED | The caller, the project or the action has used up its rate. | Wait for Retry-After seconds.
RATE_LIMIT_EXCEEDED | Too many attempts from this address, for this account, or in this project. | Wait for Retry-After seconds.
REAUTH_REQUIRED | The sign-in is too old to delete the account. | Sign in again, or send a code.
REDIRECT_NOT_ALLOWED | The address is not among the redirect addresses of the project, or there are none. | Add the address to the list of the project.
REFERRAL_ALREADY_CLAIMED | The user has claimed a referral already. | Nothing has to be done.
REFERRAL_EXHAUSTED | The code has reached its number of uses. | Ask for another code.
REFERRAL_INACTIVE | The code is not active. | Ask for another code.
REFERRAL_NOT_FOUND | There is no such code. | Check how it was typed.
REFRESH_TOKEN_REUSED | The refresh token had been replaced: its session was ended as a precaution. | Sign in again; keep only the newest token.
REQUEST_NOT_FOUND | There is no such friend request. | Read the requests again.
REQUEST_TIMEOUT | The request or the file was not complete in time. | Send it again.
RESERVED_EVENT_NAME | Names that begin with svc. belong to Trellis. | Choose another name.
RESERVED_NAME | The name is reserved in collections. | Choose another name.
RESPONSE_TOO_LARGE | The answer would have more than 8 MB, or names a column too often. | Use limit() or fewer columns.
RESTORE_UNAVAILABLE | The project has no active subscription integration. | Connect one first.
RESTORE_UPSTREAM_FAILED | The subscription provider did not answer. | Try again later.
ResourceNotEmpty | The bucket has files. | Empty it first; the code is that of the storage API of Supabase.
REST_BUSY | Too many projects use supabase-js at the moment. | Try again after Retry-After.
REST_DISABLED | supabase-js is off in this project. | The developer sets rest_enabled.
REST_UNAVAILABLE | PostgREST did not answer. | Try again after Retry-After.
ROLE_FORBIDDEN | The developer's role in the organization is too low; details name the least one. | Ask an owner of the organization.
ROLE_IN_USE | Users have this role. | Revoke it first, or send force=true.
RUN_CLOSED | This run is closed already. | Read the runs of the league.
SCOPE_EXCEEDS_CEILING | A token may not do more than its maker. | Ask for fewer scopes.
SCOPE_REQUIRED | The token lacks a scope; details.required names it. | Make a token with this scope.
SCORE_OUT_OF_RANGE | The score is outside of the range of the leaderboard. | Check the score; details have the range.
SEGMENT_CYCLE | A segment would be a part of itself. | Change its rules.
SEGMENT_IN_USE | Other definitions name the segment; details.used_by lists them. | Change these first.
SEGMENT_NOT_STATIC | Members are set by hand in static segments only. | Change the rules, or make a static segment.
SEGMENT_TOO_EXPENSIVE | The rules take longer than a preview may. | Narrow them, or look at less of the past.
SELF_FRIEND | The user named themselves. | Name another user.
SELF_REFERRAL | The code is the user's own. | Use the code of another user.
SELF_REPORT | The reported content is the user's own. | Delete it instead.
SELF_VOTE | The review is the user's own. | Do not offer a vote on it.
SERVER_KEY_REQUIRED | Only servers may do this. | Call from your server, with a server key.
SERVICE_UNAVAILABLE | The server or its control database cannot answer now. | Try again after Retry-After, with the same Idempotency-Key.
SESSION_ENDED | The app session has ended. | Start another.
SESSION_REQUIRED | This needs a person's own session, not a token or a server key. | Sign in and use the session's token.
SIGNUPS_CLOSED | The installation takes no new developers. | Contact the operator.
SIZE_REQUIRED | Free projects register the exact size of a file. | Send size_bytes.
SLOW_DOWN | The device polls too often. | Add five seconds to the interval.
SPEND_CEILING_REACHED | The project has spent what it may in this month. | Raise the ceiling, or wait for the next month.
SPEND_NOT_ALLOWED | Apps may not spend this currency. | Spend it from your server, with a server key.
SQL_DISABLED | SQL queries are off on this server. | Ask the operator: SQL_QUERIES.
SQL_FORBIDDEN | The query reads what dashboards may not read. | Leave the table, the column or the function out.
SQL_READ_ONLY | The text is no statement that only reads. | Send one SELECT, VALUES, TABLE or WITH.
SQL_TIMEOUT | The query took longer than it may, or waited too long for a lock. | Let it read less; explain says how it runs.
SQL_UNAVAILABLE | Other queries of the project, of the developer or of the server are under way. | Try again after Retry-After.
STORE_IN_USE | Users have bought in the store. | Set is_active to false instead.
STORE_NOT_FOUND | There is no such store, or the user does not see it now. | List the stores again.
STREAK_NOT_FOUND | There is no active streak with this id or key. | Check the key.
SUBJECT_NOT_FOUND | What is reported or reviewed does not exist, or the caller cannot see it. | Nothing has to be done.
SUPPRESSED | The address gets no mail of this category. | Do not send; delete the suppression only at the person's wish.
TARGET_URL_NOT_ALLOWED | The URL leads to an address that is not public, or cannot be resolved. | Use a public host.
TARGET_URL_NOT_HTTPS | The URL is not https. | Use https.
TEMPLATE_VARIABLE_MISSING | The template needs variables that were not sent; message names them. | Send all of them.
TENANT_MIGRATION_PENDING | The database of the project is being migrated. | Try again after Retry-After.
TENANT_RESOURCE_DELETE_FAILED | The stored files of the project could not be found or deleted. | Delete the project again.
TENANT_UNAVAILABLE | The database of the project cannot answer now, or is not made yet. | Try again after Retry-After, with the same Idempotency-Key.
TOKEN_EXPIRED | The session token of the user has expired. | Refresh it, then repeat the request.
TOKEN_LIMIT_REACHED | The developer has 50 live tokens. | Revoke one first.
UNAUTHORIZED | The API key or the user's session is missing, wrong or revoked. | Check X-Api-Key; sign the user in again.
UNSAFE_TYPE_CHANGE | Rows do not fit the new definition of the column. | Correct these rows first, or choose another type.
UNSUPPORTED_MEDIA_TYPE | The Content-Type is not one that the route takes. | Send application/json, or the type that /docs names.
404 UPDATE_FAILED | The user has nothing here to update: no part in the conversation, no progress in the flow. | Start the flow, or join the conversation, first.
UPGRADE_REQUIRED | The path speaks WebSocket, version 13. | Connect with a WebSocket client.
UPLOAD_NOT_FOUND | The file has not been uploaded. | Send its bytes to the upload URL, then commit again.
UPLOAD_UNVERIFIED | The storage could not confirm the file. | Repeat the request after Retry-After.
UPLOAD_WINDOW_OPEN | The upload URL of the file is still valid. | Delete it after retry_after_seconds of details.
USER_ACHIEVEMENT_NOT_FOUND | The user does not have this achievement. | Nothing has to be done.
USER_ALREADY_EXISTS | Another user has this address, phone number or other id; details name the field. | Use that user, or another value.
USER_BANNED | The user is banned. | Tell the user; administrators can lift the ban.
USER_MUTED | The user may not write until details.muted_until. | Wait until then.
USER_NOT_FOUND | There is no such user, or the caller may not see them. | Check the id.
VALIDATION_ERROR | A field has a value that is not allowed. | Correct the field that details name.
WAITLIST_FULL | The waitlist takes nobody now. | Try again after Retry-After.
WAITLIST_UNAVAILABLE | The waitlist cannot be reached. | Try again after Retry-After.
WEAK_PASSWORD | The password is too short, too long or otherwise not accepted; details say why. | Ask for another one.
WRITE_KEY_REQUIRED | An apply needs secret_api_key_write of the integration revenuecat. | Add this key to the integration.
ai_budget_exceeded | The budget of the prompt does not cover the call. | Wait for the next period, or raise the budget.
ai_model_not_multimodal | The model takes no images. | Send text only, or change the model of the prompt.
session_not_found | The session of supabase-js has ended. | Sign in again.
weak_password | supabase-js: the password is too weak. | Ask for another one.
`

/** Codes of 500: what the server was doing when it failed. */
const failures = `
APPLY_FAILED | applying the plan
CREATE_FAILED | creating
DELETE_FAILED | deleting
FETCH_FAILED | reading
GRANT_FAILED | granting the achievement
JOIN_FAILED | joining the group
LEAVE_FAILED | leaving the group
LIST_FAILED | reading the list
LOGIN_FAILED | signing in
LOGOUT_FAILED | signing out
OTP_REQUEST_FAILED | making the code or link
OTP_VERIFY_FAILED | verifying the code or link
QUALIFY_FAILED | counting the act
REFRESH_FAILED | refreshing the session
REGISTER_FAILED | registering the push token
RESTORE_FAILED | restoring purchases
REVOKE_FAILED | revoking the achievement
SEND_FAILED | storing the message
SET_FAILED | storing the value
TYPING_FAILED | telling others that the user types
UNREGISTER_FAILED | removing the push token
UPDATE_FAILED | updating
UPSERT_FAILED | storing the trust
WEBHOOK_PROCESSING_FAILED | processing an incoming webhook
`

const linesOf = (text: string): string[][] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.split(' | '))

const afterFailure =
  'Try again later, with the same Idempotency-Key; if it persists, give X-Request-Id to the operator.'

const meanings: ReadonlyMap<string, readonly [meaning: string, advice: string]> = new Map([
  ...linesOf(failures).map(
    ([code = '', doing = '']) => [`500 ${code}`, [`The server failed while ${doing}.`, afterFailure]] as const,
  ),
  ...linesOf(refusals).map(([code = '', meaning = '', advice = '']) => [code, [meaning, advice]] as const),
])

const keyOf = (status: number, code: string) => (meanings.has(`${status} ${code}`) ? `${status} ${code}` : code)

export const meaningOf = (status: number, code: string): readonly [meaning: string, advice: string] =>
  meanings.get(keyOf(status, code)) ?? ['', '']

/** Codes that routes answer and no line explains, and lines that explain a code that no route answers. */
export const meaningProblems = (answered: readonly (readonly [status: number, code: string])[]): string[] => {
  const used = new Set(answered.map(([status, code]) => keyOf(status, code)))
  return [
    ...[...used]
      .filter((key) => !meanings.get(key)?.every((text) => text))
      .map((key) => `lacks ${key}: describe it, or correct the comment or the route that names it`),
    ...[...meanings.keys()].filter((key) => !used.has(key)).map((key) => `still has ${key}`),
  ].map((problem) => `scripts/docs/codes.ts ${problem}`)
}
