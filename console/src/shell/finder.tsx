import { areas } from 'console:areas'
import { useDebouncedValue } from '@mantine/hooks'
import { Spotlight, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useQueries } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus, Search } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useProject } from '../parts/page.tsx'

const matches = (text: string, words: string) =>
  text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => words.toLowerCase().includes(word))

/** Ctrl-K: every page and action by its words, and rows of areas that search theirs, such as users by name or mail. */
export const Finder = () => {
  const { projectId, at } = useProject()
  const go = useNavigate()
  const [query, setQuery] = useState('')
  const [settled] = useDebouncedValue(query.trim(), 150)
  const finders = areas.flatMap(({ find, icon }) => (find ? [{ ...find, icon }] : []))
  const found = useQueries({
    queries: finders.map(({ title, rows }) => ({
      queryKey: ['find', title, projectId, settled],
      enabled: settled.length > 1,
      queryFn: () => rows(projectId, settled),
    })),
  })
  const open = (place: string) => {
    const [page = '', search] = place.split('?')
    void go({ to: at(page), search: Object.fromEntries(new URLSearchParams(search)) } as never)
  }
  const pages = areas.flatMap((area) =>
    area.pages
      .filter(({ path, title }) => !path.includes('$') && (title !== undefined || path === area.pages[0]?.path))
      .map((page) => ({
        area,
        page,
        title: page.title && page.path !== area.pages[0]?.path ? `${area.title}: ${page.title}` : area.title,
      })),
  )
  const groups: SpotlightActionGroupData[] = [
    ...finders.map(({ title, icon: Icon }, n) => ({
      group: title,
      actions: (settled.length > 1 ? (found[n]?.data ?? []) : []).map((row) => ({
        id: `${title} ${row.id}`,
        label: row.title,
        ...(row.about ? { description: row.about } : {}),
        leftSection: <Icon size={16} />,
        onClick: () => open(row.to),
      })),
    })),
    {
      group: 'Pages',
      actions: pages
        .filter(({ area, page, title }) =>
          matches(query, `${title} ${area.words ?? ''} ${page.words ?? ''} ${area.group}`),
        )
        .slice(0, query ? 10 : 40)
        .map(({ area, page, title }) => ({
          id: `page ${page.path}`,
          label: title,
          ...(area.group ? { description: area.group } : {}),
          leftSection: <area.icon size={16} />,
          onClick: () => open(page.path),
        })),
    },
    {
      group: 'Do',
      actions: areas
        .flatMap(({ actions = [] }) => actions)
        .filter(({ title, words = '' }) => matches(query, `${title} ${words}`))
        .slice(0, query ? 8 : 0)
        .map(({ title, to }) => ({
          id: `do ${title}`,
          label: title,
          leftSection: <Plus size={16} />,
          onClick: () => open(to),
        })),
    },
  ].filter(({ actions }) => actions.length > 0)
  const isSearching =
    query.trim().length > 1 && (settled !== query.trim() || found.some(({ isFetching }) => isFetching))
  const shown = groups.flatMap(({ actions }) => actions.map(({ id }) => id)).join()
  // what Enter was pressed for before anything was found: the first row opens when it comes
  const wanted = useRef<string>(undefined)
  // the list selects its first row when one types, not when rows come later
  useEffect(() => {
    if (query === '') return
    const rows = [...document.querySelectorAll<HTMLElement>('[role=dialog] [data-action]')]
    if (!rows.some((row) => row.dataset['selected'])) rows[0]?.setAttribute('data-selected', 'true')
    if (wanted.current !== query.trim() || isSearching) return
    wanted.current = undefined
    rows[0]?.click()
  }, [query, shown, isSearching])
  return (
    <Spotlight
      actions={groups}
      query={query}
      onQueryChange={setQuery}
      // the groups above are what was found
      filter={(_, all) => all}
      lockScroll={false}
      overlayProps={{ blur: 0, backgroundOpacity: 0.35 }}
      shortcut={['mod + K', '/']}
      nothingFound={found.some(({ isFetching }) => isFetching) ? 'Searching…' : 'Nothing of that name'}
      searchProps={{
        leftSection: <Search size={18} />,
        placeholder: 'Pages, users by name or mail, things to do',
        'aria-label': 'Search',
        onKeyDown: ({ key, currentTarget }) => {
          const isSelected = document.querySelector('[role=dialog] [data-selected]') !== null
          if (key === 'Enter' && !isSelected) wanted.current = currentTarget.value.trim()
        },
      }}
      scrollable
      maxHeight={440}
    />
  )
}
