import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, inject } from 'vitest'
import { beginFile, beginTests, endFile } from '#test/support/cpu.ts'

/**
 * Property tests draw the same values in every run, so that a change that breaks nothing never fails; `FUZZ_SEED=$RANDOM` draws
 * others.
 */
fc.configureGlobal({ seed: Number(process.env['FUZZ_SEED'] ?? 1) })

beginFile(inject('postmaster') ?? 0)
beforeAll(beginTests)
afterAll(() =>
  endFile(
    (expect.getState().testPath ?? '').replace(/^.*\/test\//, ''),
    join(dirname(inject('seenFile')), 'cpu.jsonl'),
  ),
)
