// npm run db:migrate, db:reload, db:status, db:new, db:cluster, db:url: for whoever looks after the databases, also while a server runs.
import '#server/compile_cache.ts'

await import('./database/commands.ts')
