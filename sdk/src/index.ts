export { type App, type AppOptions, createApp, createDeveloper, createServer } from './app.ts'
export {
  type Config,
  type Content,
  type ContentEntry,
  type ContentOptions,
  createConfig,
  createContent,
  createFlags,
  type Flags,
} from './cached.ts'
export { createDiagnostics, type Diagnostics, type DiagnosticsOptions, type ReportFields } from './diagnostics.ts'
export { isRefusal, isTemporary, type LocalCode, TrellisError } from './errors.ts'
export { createEvents, type Events, type EventsOptions, type RejectedEvent, type TrackedEvent } from './events.ts'
export type { ErrorCode } from './generated/codes.ts'
export { type ImageChange, imageUrl } from './image.ts'
export type { Operation, RawBody, RawReply } from './operation.ts'
export { memoryStore, newId as newUuid, type Store } from './platform.ts'
export {
  createRealtime,
  type Listening,
  type Presence,
  type Realtime,
  type RealtimeEvent,
  type RealtimeOptions,
  type Subscriber,
} from './realtime.ts'
export { createRedirectSignIn, type RedirectOptions, type RedirectSignIn } from './redirect.ts'
export type { Session } from './session.ts'
export { createSync, type Sync, type SyncCollection, type SyncOptions } from './sync.ts'
export type { Refusal, Row, Verdict } from './sync_calls.ts'
export { onPoke } from './sync_poke.ts'
export { memorySyncStore, type SyncStore } from './sync_store.ts'
export {
  type AsyncStorageLike,
  asyncStorageSyncStore,
  type SqliteQuery,
  sqliteSyncStore,
} from './sync_store_native.ts'
export type { RowChanges } from './sync_watch.ts'
export type { Write } from './sync_write.ts'
export type { Call, CallOptions } from './transport.ts'
export { type Bytes, type Uploaded, type UploadOptions, upload } from './upload.ts'
