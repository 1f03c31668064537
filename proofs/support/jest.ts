import { vi } from 'vitest'

// what the suite takes of jest
Object.assign(globalThis, { jest: vi })
