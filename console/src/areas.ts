import type { LucideIcon } from 'lucide-react'
import type { ComponentType } from 'react'

/** The groups of the navigation, in its order. The first has no title. */
export const groups = ['', 'Build', 'Users', 'Engage', 'Earn', 'Reach', 'Project'] as const

export type Page = {
  /** Below the project, with parameters as `users/$userId`. */
  readonly path: string
  /** A page with a title is a tab of its area; one without is reached from a row or a button. */
  readonly title?: string
  /** What else people search for. */
  readonly words?: string
  /** Loaded when it is opened; the module exports it as `Page`. */
  readonly load: () => Promise<{ Page: ComponentType }>
}

/** Something that the search offers: it opens a page, with what stands after `?` in its address. */
export type Action = { readonly title: string; readonly to: string; readonly words?: string }

export type Found = { readonly id: string; readonly title: string; readonly about?: string; readonly to: string }

/**
 * An area of the console: one entry of the navigation. A folder with an `area.ts` that exports one as `area`, or tabs of another one, is found by the
 * build.
 */
export type Area = {
  readonly group: (typeof groups)[number]
  /** Its place in the group. */
  readonly order: number
  readonly title: string
  readonly icon: LucideIcon
  readonly words?: string
  /** The first is where its entry leads. */
  readonly pages: readonly Page[]
  readonly actions?: readonly Action[]
  /** Rows of this area that a search finds, such as users by name. */
  readonly find?: {
    readonly title: string
    readonly rows: (projectId: string, text: string) => Promise<readonly Found[]>
  }
}

export const declareArea = (area: Area): Area => area

/** Pages that are tabs of an area of another folder, whose title is `tabOf`: the navigation stays short. */
export type Tabs = Pick<Area, 'pages' | 'actions'> & {
  readonly tabOf: string
  /** The path of the tab that these stand before; without it they stand at the end. */
  readonly before?: string
}

export const declareTabs = (tabs: Tabs): Tabs => tabs

const isTabs = (one: Area | Tabs): one is Tabs => 'tabOf' in one

const placed = (pages: readonly Page[], { before, pages: more }: Tabs): readonly Page[] => {
  const at = before === undefined ? pages.length : pages.findIndex(({ path }) => path === before)
  if (at < 0) throw new Error(`there is no tab ${before}`)
  return pages.toSpliced(at, 0, ...more)
}

/** What the folders declare, as areas with all of their tabs. */
export const joined = (declared: readonly (Area | Tabs)[]): readonly Area[] => {
  const areas = declared.filter((one): one is Area => !isTabs(one))
  const tabs = declared.filter(isTabs)
  const lost = tabs.find(({ tabOf }) => !areas.some(({ title }) => title === tabOf))
  if (lost) throw new Error(`there is no area ${lost.tabOf}`)
  return areas.map((area) => {
    const more = tabs.filter(({ tabOf }) => tabOf === area.title)
    if (more.length === 0) return area
    const actions = more.flatMap((one) => one.actions ?? [])
    return { ...area, pages: more.reduce(placed, area.pages), actions: [...(area.actions ?? []), ...actions] }
  })
}
