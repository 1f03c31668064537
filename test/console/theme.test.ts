import * as mantine from '@mantine/core'
import { expect, test } from 'vitest'
import { theme as own, variables } from '../../console/src/theme.ts'

/** The colours of alerts and badges, in both schemes. */
const theme = mantine.mergeMantineTheme(mantine.DEFAULT_THEME, own)
const base = mantine.defaultCssVariablesResolver(theme)
const added = variables(theme)

const resolvedIn = (scheme: 'light' | 'dark') => {
  const all: Record<string, string> = {
    ...base.variables,
    ...base[scheme],
    ...added.variables,
    ...added[scheme],
  }
  const colour = (name: string): string => {
    const value = all[name] ?? ''
    const [, inner] = /^var\((--[\w-]+)\)$/.exec(value) ?? []
    return inner ? colour(inner) : value
  }
  return colour
}
const luminance = (hex: string) => {
  expect(hex).toMatch(/^#[0-9a-f]{6}$/i)
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
const contrast = (one: string, other: string) => {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

test.for(['yellow', 'red', 'green', 'leaf', 'blue', 'gray'])(
  '%s in the dark: a calm ground, on which text is read',
  (name) => {
    const dark = resolvedIn('dark')
    const ground = dark(`--mantine-color-${name}-light`)
    expect(contrast(ground, dark(`--mantine-color-${name}-light-color`))).toBeGreaterThanOrEqual(4.5)
    expect(contrast(ground, dark('--mantine-color-dimmed'))).toBeGreaterThanOrEqual(4.5)
    // it is seen beside the page, and does not shout
    const beside = contrast(ground, dark('--mantine-color-body'))
    expect(beside).toBeGreaterThan(1.1)
    expect(beside).toBeLessThan(1.5)
  },
)

test('status words are read on the page in both schemes', () => {
  for (const scheme of ['light', 'dark'] as const)
    for (const name of ['--good', '--bad', '--warn', '--mantine-color-dimmed', '--mantine-color-error']) {
      const colour = resolvedIn(scheme)
      const page = scheme === 'light' ? '#ffffff' : colour('--mantine-color-body')
      expect(contrast(page, colour(name)), `${name} in ${scheme}`).toBeGreaterThanOrEqual(4.5)
    }
})
