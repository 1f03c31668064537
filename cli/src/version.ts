import { readFileSync } from 'node:fs'

declare const trellisVersion: string | undefined

/** Written into the packed file; run from its sources, the manifest says it. */
export const version = (): string =>
  typeof trellisVersion === 'string'
    ? trellisVersion
    : JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
