// npm start: the server with its background work.
import '#server/compile_cache.ts'

await import('#server/serve.ts')
