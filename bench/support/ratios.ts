/** A ratio that an aim is about. Ratios hold on another machine, and beside other work, where the figures do not. */
export type Ratio = { readonly name: string; readonly value: number; readonly better: 'higher' | 'lower' }

/** Ratios of the benches by the name of the bench, and of the ratio. */
export type KeptRatios = Readonly<Record<string, Readonly<Record<string, number>>>>

/** A run may be a fifth worse than the last one that was kept: what the same program measures on a busy machine. */
const worst = 1.2

/** What got worse than that, a line each. A ratio that one of the two runs did not measure says nothing. */
export const regressions = (kept: Readonly<Record<string, number>>, ratios: readonly Ratio[]): string[] =>
  ratios.flatMap(({ name, value, better }) => {
    const former = kept[name]
    if (former === undefined || !Number.isFinite(value)) return []
    const times = better === 'lower' ? value / former : former / value
    return times > worst ? [`${name}: ${value.toFixed(2)}, was ${former.toFixed(2)} (${better} is better)`] : []
  })

/** The ratios to keep for a bench: those measured, to three digits. */
export const toKeep = (ratios: readonly Ratio[]): Record<string, number> =>
  Object.fromEntries(
    ratios
      .filter(({ value }) => Number.isFinite(value))
      .map(({ name, value }) => [name, Number(value.toPrecision(3))] as const),
  )
