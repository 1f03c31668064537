/** `TRELLIS_NIGHTLY=1`: property tests draw as much as they once did in every run. */
export const isNightly = process.env['TRELLIS_NIGHTLY'] === '1'

/** How many draws a property test makes: enough to meet each rule in every run, and many more at night. */
export const sized = (usual: number, nightly: number): number => (isNightly ? nightly : usual)
