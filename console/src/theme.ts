import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from '@mantine/core'

/** The brand's green. Shade 7 has a contrast of 4.9 to 1 against white, in both schemes. */
const leaf: MantineColorsTuple = [
  '#eefbf3',
  '#d9f4e4',
  '#aee7c6',
  '#80d9a6',
  '#5ccd8b',
  '#45c67a',
  '#38a868',
  '#26804d',
  '#1f6e44',
  '#145233',
]

export const theme = createTheme({
  primaryColor: 'leaf',
  primaryShade: 7,
  colors: { leaf },
  defaultRadius: 'md',
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace',
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.375rem', lineHeight: '1.3' },
      h2: { fontSize: '1.0625rem', lineHeight: '1.4' },
      h3: { fontSize: '0.875rem', lineHeight: '1.4' },
    },
  },
  components: {
    // locking the scroll writes a style element, which the policy of the page forbids
    // its head is no banner of the page
    Modal: {
      defaultProps: {
        lockScroll: false,
        centered: true,
        closeButtonProps: { 'aria-label': 'Close' },
        attributes: { header: { role: 'none' } },
      },
    },
    Drawer: {
      defaultProps: {
        lockScroll: false,
        position: 'right',
        size: 'lg',
        closeButtonProps: { 'aria-label': 'Close' },
        attributes: { header: { role: 'none' } },
      },
    },
    Button: { defaultProps: { size: 'sm' } },
    Badge: { defaultProps: { size: 'sm', radius: 'sm', tt: 'none', variant: 'light' } },
    // the initials' own colours are too light on their ground
    Avatar: { styles: { placeholder: { color: 'var(--mantine-color-text)' } } },
    // inside of a frame: the same ground, so that fields in it are seen in the dark
    Card: { styles: { root: { backgroundColor: 'transparent' } } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true } },
    Menu: { defaultProps: { shadow: 'md', position: 'bottom-end' } },
    // yellow on yellow is hard to read
    Alert: { defaultProps: { variant: 'light' }, styles: { title: { color: 'var(--mantine-color-text)' } } },
  },
})

/** Variables beside Mantine's. The build writes all of them to a file: the policy forbids the style element that Mantine would make. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5c6370',
    '--mantine-color-placeholder': '#6b7280',
    '--mantine-color-error': '#c92a2a',
    '--side': '#f7f8f9',
    '--line': '#e3e6ea',
    '--hover': '#f1f3f5',
    '--here': '#e3f4ea',
    '--here-text': '#145233',
    '--good': '#1f6e44',
    '--bad': '#b02525',
    '--warn': '#9a5b00',
    '--chart-grid': '#e3e6ea',
  },
  dark: {
    '--mantine-color-dimmed': '#a6a9ad',
    '--mantine-color-placeholder': '#9a9da1',
    '--mantine-color-error': '#ff8f8f',
    '--mantine-color-body': '#18191b',
    '--mantine-color-default': '#222427',
    '--side': '#1d1e20',
    '--line': '#36383c',
    '--hover': '#2a2c2f',
    '--here': '#20382b',
    '--here-text': '#aee7c6',
    '--good': '#80d9a6',
    '--bad': '#ff8f8f',
    '--warn': '#ffc078',
    '--chart-grid': '#36383c',
    // the grounds of alerts and badges: Mantine's own are as strong as a button, and an alert fills the width of a page
    '--mantine-color-yellow-light': '#332a14',
    '--mantine-color-red-light': '#3b2022',
    '--mantine-color-green-light': '#1a2f20',
    '--mantine-color-leaf-light': '#1a2f20',
    '--mantine-color-blue-light': '#192b3d',
    '--mantine-color-gray-light': '#2a2c2f',
  },
})
