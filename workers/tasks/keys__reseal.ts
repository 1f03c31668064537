import { resealEverything } from '#fleet/reseal.ts'
import { job } from '#workers/task.ts'

/** Encrypts again, under the current key, what is stored under others; nothing to do unless a key was replaced. */
export const keysReseal = job('keys__reseal', (services) => resealEverything(services))
