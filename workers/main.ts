// npm run worker: runs background jobs without HTTP, beside servers that run with WORKER=off. Any number of processes, on any machine.
import '#server/compile_cache.ts'

await import('#workers/work.ts')
