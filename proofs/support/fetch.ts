const { AbortController, Headers, Request, Response } = globalThis

/** What the suite knows as @supabase/node-fetch and node-abort-controller: those that this Node has. */
export { AbortController, Headers, Request, Response }
// biome-ignore lint/style/noDefaultExport: the suite imports it by that
export default globalThis.fetch
