import { areas } from 'console:areas'
import { ActionIcon, Button, Kbd, Menu, Text, UnstyledButton, useMantineColorScheme } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { spotlight } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { Menu as Burger, ChevronsUpDown, Moon, Search, Sprout, Sun, UserRound, X } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { getDeveloper, getProject, listProjects } from '../../../sdk/src/generated/admin.ts'
import { call, signOut } from '../api.ts'
import { groups } from '../areas.ts'
import { usePlace, useProject } from '../parts/page.tsx'
import { failed } from '../parts/states.tsx'
import { Leaving } from '../parts/unsaved.tsx'
import { Finder } from './finder.tsx'
import { Keys } from './keys.tsx'
import { Offline } from './offline.tsx'

export const useProjects = () => useQuery({ queryKey: ['projects'], queryFn: () => call(listProjects) })

const ProjectSwitch = () => {
  const { projectId } = useProject()
  const { data } = useProjects()
  const go = useNavigate()
  const name = data?.data.find(({ id }) => id === projectId)?.name ?? '…'
  return (
    <Menu width={212} position="bottom-start">
      <Menu.Target>
        <UnstyledButton className="nav" w="100%" aria-label={`Project ${name}: change`}>
          <Text fw={600} size="sm" flex={1} truncate>
            {name}
          </Text>
          <ChevronsUpDown size={14} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        {data?.data.map((project) => (
          <Menu.Item key={project.id} onClick={() => go({ to: `/projects/${project.id}` as never })}>
            {project.name}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={() => go({ to: '/' as never })}>All projects</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

/** Who may only read is told before a form is filled in. */
const Reader = () => {
  const { path } = useProject()
  const { data: project } = useQuery({
    queryKey: ['project', path.projectId],
    queryFn: () => call(getProject, { path }),
  })
  const { data: me } = useQuery({ queryKey: ['me'], queryFn: () => call(getDeveloper) })
  const owner = project?.data.organization_id
  if (me?.data.organizations.find(({ id }) => id === owner)?.role !== 'viewer') return null
  return (
    <Text size="sm" c="dimmed" className="reader" role="note">
      You are a viewer of this project: you may read all of it, and change nothing. An owner or admin can give you
      another role.
    </Text>
  )
}

const Brand = () => (
  <Link to="/" className="brand">
    <Sprout size={20} aria-hidden />
    Trellis
  </Link>
)

const Navigation = () => {
  const { at } = useProject()
  const place = usePlace()
  return (
    <nav aria-label="Project">
      {groups.map((group) => (
        <div key={group}>
          {group && <div className="nav-title">{group}</div>}
          {areas
            .filter((area) => area.group === group)
            .sort((one, other) => one.order - other.order)
            .map((area) => (
              <Link
                key={area.title}
                className="nav"
                to={at(area.pages[0]?.path ?? '')}
                activeOptions={{ exact: true, includeSearch: false }}
                data-here={place?.area === area || undefined}
              >
                <area.icon size={16} strokeWidth={1.75} aria-hidden />
                {area.title}
              </Link>
            ))}
        </div>
      ))}
    </nav>
  )
}

const Theme = () => {
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true })
  const isDark = useIsDark()
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label={isDark ? 'Light colours' : 'Dark colours'}
      onClick={() => setColorScheme(isDark ? 'light' : 'dark')}
    >
      {isDark ? <Sun size={16} /> : <Moon size={16} />}
    </ActionIcon>
  )
}
const useIsDark = () => {
  const { colorScheme } = useMantineColorScheme()
  return colorScheme === 'dark' || (colorScheme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches)
}

const Account = () => {
  const go = useNavigate()
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="Account">
          <UserRound size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => go({ to: '/account' as never })}>Your account</Menu.Item>
        <Menu.Item onClick={() => go({ to: '/' as never })}>All projects</Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={() => signOut().catch(failed)}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

const Frame = ({ side, note, finder }: { side?: ReactNode; note?: ReactNode; finder?: ReactNode }) => {
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  useEffect(() => setOpen(false), [pathname])
  useHotkeys([['Escape', () => setOpen(false)]])
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="shell" data-outside={side === undefined || undefined}>
        {side && (
          <aside className="side" id="side" data-open={isOpen || undefined}>
            {side}
          </aside>
        )}
        <header className="bar">
          {side ? (
            <ActionIcon
              className="only-small"
              variant="subtle"
              color="gray"
              aria-label={isOpen ? 'Close the menu' : 'Open the menu'}
              aria-expanded={isOpen}
              aria-controls="side"
              onClick={() => setOpen(!isOpen)}
            >
              {isOpen ? <X size={18} /> : <Burger size={18} />}
            </ActionIcon>
          ) : (
            <Brand />
          )}
          {finder && (
            <Button
              className="bar-search"
              variant="default"
              size="xs"
              justify="space-between"
              leftSection={<Search size={14} />}
              rightSection={
                <Kbd size="xs" className="only-wide">
                  Ctrl K
                </Kbd>
              }
              onClick={() => spotlight.open()}
              fw={400}
            >
              Search
            </Button>
          )}
          <div className="grow" />
          <Theme />
          <Account />
        </header>
        <main className="main" id="content" tabIndex={-1}>
          <Offline />
          {note}
          <Outlet />
        </main>
      </div>
      {finder}
      <Keys />
      <Leaving />
    </>
  )
}

/** The frame of a project's pages: its navigation at the left, search and account above. */
export const Shell = () => (
  <Frame
    side={
      <>
        <Brand />
        <ProjectSwitch />
        <Navigation />
      </>
    }
    note={<Reader />}
    finder={<Finder />}
  />
)

/** The frame of pages that belong to no project. */
export const Outside = () => <Frame />
