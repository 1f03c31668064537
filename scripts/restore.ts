// npm run restore -- --from PATH: an installation from a backup, into an empty DATA_DIR.
import '#server/compile_cache.ts'

await import('./backup/restore.ts')
