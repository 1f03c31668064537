import { Button, Menu, NavLink, Skeleton } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { callAny } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { More } from '../parts/more.tsx'
import { PageHead, ProjectLink, useOpen, useParam, useProject } from '../parts/page.tsx'
import { count, Failure } from '../parts/states.tsx'
import { accessOf, type Collection, one, useCollection, useCollections } from './data.ts'

const tabs = [
  ['', 'Rows'],
  ['/columns', 'Columns'],
  ['/access', 'Access'],
  ['/indexes', 'Indexes'],
  ['/api', 'API'],
] as const

/** The collections of the project, at the left of each of them. */
const Names = ({ current }: { current: string }) => {
  const { data } = useCollections()
  const { at } = useProject()
  const open = useOpen()
  return (
    <nav className="names" aria-label="Collections">
      {data ? (
        data.map(({ name, row_count_estimate }) => (
          <NavLink
            key={name}
            component={Link}
            to={at(`collections/${name}`) as never}
            label={name}
            active={name === current}
            rightSection={<span className="cell-sub">{count(row_count_estimate)}</span>}
          />
        ))
      ) : (
        <Skeleton h={160} />
      )}
      <Button
        variant="subtle"
        size="compact-sm"
        leftSection={<Plus size={14} />}
        onClick={() => open('collections/new')}
        mt={6}
      >
        New collection
      </Button>
    </nav>
  )
}

/** One collection: its name, its tabs, and the others at the left. */
export const Frame = ({
  actions,
  children,
}: {
  actions?: (collection: Collection) => ReactNode
  children: (collection: Collection) => ReactNode
}) => {
  const name = useParam('name')
  const { path, at } = useProject()
  const open = useOpen()
  const { data, error, refetch } = useCollection(name)
  const [isDeleting, setDeleting] = useState(false)
  const about = data && (data.description || accessOf(data))
  return (
    <div className="named">
      <Names current={name} />
      <div className="named-page">
        <div className="only-small links">
          <ProjectLink to="collections">All collections</ProjectLink>
        </div>
        <PageHead
          title={name}
          about={about ?? ' '}
          actions={
            data && (
              <>
                {actions?.(data)}
                <More>
                  <Menu.Item onClick={() => setDeleting(true)} c="var(--bad)">
                    Delete collection
                  </Menu.Item>
                </More>
              </>
            )
          }
        />
        <nav className="tabs" aria-label={name}>
          {tabs.map(([end, title]) => (
            <Link
              key={title}
              to={at(`collections/${name}${end}`) as never}
              className="tab"
              activeOptions={{ exact: true, includeSearch: false }}
            >
              {title}
            </Link>
          ))}
        </nav>
        {error ? <Failure error={error} onRetry={refetch} /> : data ? children(data) : <Skeleton h={420} />}
        <Confirm
          title="Delete collection"
          verb="Delete collection"
          said={`“${name}” is deleted.`}
          isOpen={isDeleting}
          onClose={() => setDeleting(false)}
          typed={name}
          run={() => callAny(`DELETE ${one}`, { path: { ...path, name }, query: { confirm: name } })}
          after={() => void open('collections')}
        >
          The collection “{name}” goes for good, with {count(data?.row_count_estimate ?? 0)} rows. Apps that ask for it
          get an error.
        </Confirm>
      </div>
    </div>
  )
}
