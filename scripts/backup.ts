// npm run backup -- --to PATH: the whole installation as one file, while it is used.
import '#server/compile_cache.ts'

await import('./backup/back_up.ts')
