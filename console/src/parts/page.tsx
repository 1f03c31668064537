import { areas } from 'console:areas'
import { Anchor, Box, Group, Text, Title } from '@mantine/core'
import { Link, useLocation, useMatches, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { type ReactNode, useCallback, useEffect, useRef } from 'react'
import type { Area, Page } from '../areas.ts'

/** The project of the page, and where its pages are. */
export const useProject = () => {
  const { projectId = '' } = useParams({ strict: false }) as { projectId?: string }
  return { projectId, path: { projectId }, at: (page: string) => `/projects/${projectId}/${page}`.replace(/\/$/, '') }
}

/** A parameter of the page's path, such as `userId`. */
export const useParam = (name: string): string => (useParams({ strict: false }) as Record<string, string>)[name] ?? ''

/** What stands in the address: filters, tabs, open drawers. Setting one to undefined takes it away. */
export const useAddress = <Keys extends string>() => {
  const search = useSearch({ strict: false }) as Partial<Record<Keys, string>>
  const go = useNavigate()
  const { pathname } = useLocation()
  const set = useCallback(
    (next: Partial<Record<Keys, string | undefined>>, replace = true) =>
      go({
        to: pathname,
        search: (before: object) => ({ ...before, ...next }),
        replace,
        resetScroll: false,
      } as never),
    [go, pathname],
  )
  return [search, set] as const
}

/** Opens a page of the project. */
export const useOpen = () => {
  const go = useNavigate()
  const { at } = useProject()
  return (page: string, search?: Readonly<Record<string, string | undefined>>) =>
    go({ to: at(page), ...(search ? { search } : {}) } as never)
}

/** A link to a page of the project. */
export const ProjectLink = ({
  to,
  search,
  children,
  ...rest
}: {
  to: string
  search?: Readonly<Record<string, string>>
  children: ReactNode
  className?: string
  'aria-label'?: string
}) => {
  const { at } = useProject()
  return (
    <Link to={at(to)} {...(search ? { search: search as never } : {})} {...rest}>
      {children}
    </Link>
  )
}

/** The area and the page that the address names. */
export const usePlace = (): { area: Area; page: Page } | undefined => {
  const last = useMatches().at(-1)
  const path = last?.fullPath?.replace(/^\/projects\/\$projectId\/?/, '') ?? ''
  for (const area of areas) {
    const page = area.pages.find((one) => one.path === path)
    if (page) return { area, page }
  }
  return undefined
}

/** The title of a tab. The open one is scrolled to, where the row of tabs is wider than the screen. */
const TabTitle = ({ isActive, children }: { isActive: boolean; children: ReactNode }) => {
  const title = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    const tab = title.current?.closest('.tab')
    if (!isActive || !tab) return
    // while the page is loaded the row has no size yet
    const observer = new ResizeObserver(() => tab.scrollIntoView({ inline: 'nearest', block: 'nearest' }))
    observer.observe(tab)
    return () => observer.disconnect()
  }, [isActive])
  return <span ref={title}>{children}</span>
}

const AreaTabs = () => {
  const place = usePlace()
  const { at } = useProject()
  const tabs = place?.page.title ? place.area.pages.filter(({ title }) => title !== undefined) : []
  if (tabs.length < 2) return null
  return (
    <nav className="tabs" aria-label={place?.area.title}>
      {tabs.map(({ path, title }) => (
        <Link key={path} to={at(path)} className="tab" activeOptions={{ exact: true, includeSearch: false }}>
          {({ isActive }) => <TabTitle isActive={isActive}>{title}</TabTitle>}
        </Link>
      ))}
    </nav>
  )
}

/** Where the last page was that took the focus. */
let lastPath = ''

/** The head of every page: its title, a line about it, its main actions at the right, and the tabs of its area. Names the browser's tab, too. */
export const PageHead = ({
  title,
  about,
  actions,
  back,
}: {
  title: string
  about?: ReactNode
  actions?: ReactNode
  /** The page above, such as the list of a row. */
  back?: { readonly title: string; readonly to: string }
}) => {
  const { pathname } = useLocation()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Trellis`
  }, [title])
  // after each move the keyboard and screen readers begin here; a page that is drawn anew leaves whoever went on where they are
  useEffect(() => {
    const isHere = pathname === lastPath && document.activeElement !== document.body
    lastPath = pathname
    if (!isHere) heading.current?.focus({ preventScroll: true })
  }, [pathname])
  return (
    <>
      {back && (
        <Anchor component={ProjectLink} to={back.to} size="sm" c="dimmed">
          {back.title}
        </Anchor>
      )}
      <Group justify="space-between" align="flex-start" mb="md" gap="sm">
        <Box miw={0} maw="100%">
          <Title order={1} tabIndex={-1} id="title" className="title" ref={heading} data-at={pathname}>
            {title}
          </Title>
          {about && (
            <Text c="dimmed" size="sm" component="div">
              {about}
            </Text>
          )}
        </Box>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      <AreaTabs />
    </>
  )
}

/** Views of one thing as tabs, of which the open one stands in the address; the first is open without it. */
export const Views = ({
  views,
  label,
  name = 'view',
}: {
  views: readonly (readonly [string, string])[]
  label: string
  name?: string
}) => {
  const { pathname } = useLocation()
  return (
    <nav className="tabs" aria-label={label}>
      {views.map(([view, title], at) => (
        <Link
          key={view}
          to={pathname.replace(/^\/console/, '') as never}
          search={((before: object) => ({ ...before, [name]: at === 0 ? undefined : view })) as never}
          className="tab"
          resetScroll={false}
          activeOptions={{ exact: false, includeSearch: true, explicitUndefined: true }}
        >
          {({ isActive }) => <TabTitle isActive={isActive}>{title}</TabTitle>}
        </Link>
      ))}
    </nav>
  )
}

/** A part of a page, in a frame, with its title. */
export const Card = ({
  title,
  actions,
  children,
  flush = false,
}: {
  title?: string
  actions?: ReactNode
  children: ReactNode
  /** Its content reaches its edges, as a table does. */
  flush?: boolean
}) => (
  <section className="card" data-flush={flush || undefined} aria-label={title}>
    {title && (
      <Group justify="space-between" className="card-head" gap="xs">
        <Title order={2}>{title}</Title>
        {actions}
      </Group>
    )}
    {children}
  </section>
)

/** Names and values of one thing, below each other. */
export const Facts = ({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) => (
  <dl className="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value === null || value === undefined || value === '' ? '—' : value}</dd>
      </div>
    ))}
  </dl>
)
