import { randomBytes } from 'node:crypto'

/**
 * By this header the console's own route says, within this process, that a refresh comes from it. No client can send it: the value never leaves the process.
 */
export const consoleMark = { name: 'x-trellis-console', value: randomBytes(32).toString('base64url') } as const
