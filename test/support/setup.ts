import fc from 'fast-check'

/**
 * Property tests draw the same values in every run, so that a change that breaks nothing never fails; `FUZZ_SEED=$RANDOM` draws
 * others.
 */
fc.configureGlobal({ seed: Number(process.env['FUZZ_SEED'] ?? 1) })
