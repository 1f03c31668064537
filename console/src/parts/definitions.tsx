import { ActionIcon, Button, Group, Menu, Skeleton } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Ellipsis, type LucideIcon, Pause as PauseIcon, Play, Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { callAny, type Row, TrellisError } from '../api.ts'
import { Confirm } from './dialogs.tsx'
import { Drawer } from './drawer.tsx'
import { criteriaWords } from './form/criteria.ts'
import { useDocument } from './form/document.ts'
import type { FieldWords } from './form/fields.tsx'
import { filterWords } from './form/filter.ts'
import { OperationForm } from './form/form.tsx'
import { ReferenceName } from './form/reference_input.tsx'
import { rewardWords } from './form/reward.ts'
import { bodySchema, resolved, wordsOf } from './form/schema.ts'
import { type Column, List, SearchBox } from './list.tsx'
import { Card, Facts, PageHead, ProjectLink, useAddress, useOpen, useParam, useProject } from './page.tsx'
import { count, done, Empty, Failure, failed, useRefresh, When } from './states.tsx'
import { Status } from './status.tsx'

/** Something that can be done with one row, by a form in a drawer or after a question. */
export type RowAction = {
  readonly title: string
  /** `POST /v1/admin/projects/{projectId}/...`, with the parameter of the row. */
  readonly operation: string
  readonly verb: string
  /** What is said afterwards. */
  readonly said: string
  /** A question before an action that takes no input. Without it the action is a form. */
  readonly asks?: (row: Row) => ReactNode
  readonly isOffered?: (row: Row) => boolean
  readonly words?: Readonly<Record<string, FieldWords>>
  readonly preset?: (row: Row) => Row
  /** What an action with a question sends. */
  readonly body?: Row
  /** Takes back what an action with a question did. */
  readonly undo?: () => Promise<unknown>
}

/** Definitions of one kind: leaderboards, streaks, items. Their list, form and page are made from this. */
export type Kind = {
  /** Below `/v1/admin/projects/{projectId}/`. */
  readonly path: string
  /** The name of the path's parameter for one of them. */
  readonly id: string
  /** The page of their list in the console. */
  readonly at: string
  readonly noun: string
  readonly plural: string
  readonly icon: LucideIcon
  readonly about: string
  /** What they are good for, where there are none yet. */
  readonly empty: string
  readonly columns: readonly Column<Row>[]
  readonly titleOf?: (row: Row) => string
  readonly keyOf?: (row: Row) => string
  /** The query parameter of a search, where the list has one. */
  readonly search?: string
  /** What the list is always asked with. */
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly words?: Readonly<Record<string, FieldWords>>
  readonly preset?: Row
  /** The method that changes one. */
  readonly update?: 'PATCH' | 'PUT'
  readonly canDelete?: boolean
  /** Where the deletion of one that is in use is refused, and `?force=true` takes it from its users first. */
  readonly inUse?: {
    /** The code of the refusal. */
    readonly code: string
    /** The list of what ends with it, such as `GET /v1/.../assignments`. */
    readonly operation: string
    /** Says how many there are. */
    readonly refusal: (total: number) => string
    /** What has to be agreed to. */
    readonly consent: (total: number) => string
  }
  readonly actions?: readonly RowAction[]
  /** Beside the facts of one: statistics, members, runs. */
  readonly Detail?: (props: { row: Row }) => ReactNode
  readonly facts?: (row: Row) => readonly (readonly [string, ReactNode])[]
  readonly tools?: () => ReactNode
  /** Beside "Edit" of one. */
  readonly Buttons?: (props: { row: Row }) => ReactNode
  /** Where one of them is read, if not at its own path, and where it is in the answer. */
  readonly one?: { readonly operation: string; readonly row: (data: Row) => Row }
  /** Whether one is shown as the sum of what its page shows, without a card of settings. */
  readonly hasNoFacts?: boolean
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
const titleOf = (kind: Kind, row: Row) =>
  kind.titleOf?.(row) ?? String(row['name'] ?? row['key'] ?? row['code'] ?? row['id'])
const keyOf = (kind: Kind, row: Row) => kind.keyOf?.(row) ?? String(row['id'] ?? row['key'])
const listOf = ({ path }: Kind) => `/v1/admin/projects/{projectId}/${path}`
const rowOf = (kind: Kind) => `${listOf(kind)}/{${kind.id}}`

/** The first column of definitions: the name as a link, with the key below. */
export const named = (at: string, id: (row: Row) => string = (row) => String(row['id'])): Column<Row> => ({
  title: 'Name',
  show: (row) => (
    <>
      <ProjectLink to={`${at}/${encodeURIComponent(id(row))}`}>{String(row['name'] ?? row['key'])}</ProjectLink>
      {row['name'] !== undefined && row['key'] !== undefined && (
        <span className="cell-sub mono">{String(row['key'])}</span>
      )}
    </>
  ),
})
export const activeColumn: Column<Row> = {
  title: 'Status',
  show: (row) => <Status value={row['is_active'] === false ? 'paused' : 'active'} />,
}
export const changedColumn: Column<Row> = {
  title: 'Changed',
  show: (row) => <When at={(row['updated_at'] ?? row['created_at']) as string} />,
}

/** Every definition of a kind, with a button for a new one. */
export const DefinitionList = ({ kind }: { kind: Kind }) => {
  const [{ q }] = useAddress<'q'>()
  const open = useOpen()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open(`${kind.at}/new`)}>
      New {kind.noun}
    </Button>
  )
  const Icon = kind.icon
  return (
    <>
      <PageHead
        title={capital(kind.plural)}
        about={kind.about}
        actions={
          <>
            {kind.tools?.()}
            {make}
          </>
        }
      />
      {kind.search && (
        <Group mb="sm">
          <SearchBox label={`Search ${kind.plural}`} />
        </Group>
      )}
      <List<Row>
        name={capital(kind.plural)}
        operation={`GET ${listOf(kind)}`}
        query={{ ...kind.query, ...(kind.search && q ? { [kind.search]: q } : {}) }}
        columns={kind.columns}
        keyOf={(row) => keyOf(kind, row)}
        to={(row) => `${kind.at}/${encodeURIComponent(keyOf(kind, row))}`}
        empty={
          q ? (
            <Empty title={`Nothing matches “${q}”`} />
          ) : (
            <Empty icon={<Icon size={22} />} title={`No ${kind.plural} yet`} action={make}>
              {kind.empty}
            </Empty>
          )
        }
      />
    </>
  )
}

/** The form of a new definition. */
export const NewDefinition = ({ kind }: { kind: Kind }) => {
  const open = useOpen()
  return (
    <>
      <PageHead title={`New ${kind.noun}`} about={kind.about} back={{ title: capital(kind.plural), to: kind.at }} />
      <OperationForm
        isPage
        operation={`POST ${listOf(kind)}`}
        verb={`Create ${kind.noun}`}
        words={kind.words ?? {}}
        preset={kind.preset ?? {}}
        onCancel={() => open(kind.at)}
        onDone={(data) => {
          done(`${capital(kind.noun)} “${titleOf(kind, data as Row)}” is there.`)
          void open(`${kind.at}/${encodeURIComponent(keyOf(kind, data as Row))}`)
        }}
      />
    </>
  )
}

/** The actions of a row, as a menu; each opens its form or its question. */
export const RowActions = ({
  row,
  path,
  actions,
  menu = [],
  isQuiet = false,
  children,
}: {
  row: Row
  path: Readonly<Record<string, string>>
  actions: readonly RowAction[]
  /** What the page itself does. */
  menu?: readonly { readonly title: string; readonly run: () => void }[]
  /** In a row of a table: without a frame. */
  isQuiet?: boolean
  children?: ReactNode
}) => {
  const { path: project } = useProject()
  const [current, setCurrent] = useState<RowAction>()
  const [isOpen, setOpen] = useState(false)
  const offered = actions.filter(({ isOffered }) => isOffered?.(row) ?? true)
  const run = (action: RowAction) => {
    setCurrent(action)
    setOpen(true)
  }
  return (
    <>
      {(offered.length > 0 || menu.length > 0 || children) && (
        <Menu>
          <Menu.Target>
            <ActionIcon
              {...(isQuiet ? { variant: 'subtle', color: 'gray', size: 28 } : { variant: 'default', size: 36 })}
              aria-label="More actions"
            >
              <Ellipsis size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {offered.map((action) => (
              <Menu.Item key={action.title} onClick={() => run(action)}>
                {action.title}
              </Menu.Item>
            ))}
            {menu.map(({ title, run: open }) => (
              <Menu.Item key={title} onClick={open}>
                {title}
              </Menu.Item>
            ))}
            {children}
          </Menu.Dropdown>
        </Menu>
      )}
      <Drawer
        opened={isOpen && current?.asks === undefined}
        onClose={() => setOpen(false)}
        title={current?.title ?? ''}
      >
        {current && (
          <OperationForm
            key={current.operation}
            operation={current.operation}
            path={path}
            verb={current.verb}
            words={current.words ?? {}}
            preset={current.preset?.(row) ?? {}}
            onCancel={() => setOpen(false)}
            onDone={() => {
              setOpen(false)
              done(current.said)
            }}
          />
        )}
      </Drawer>
      <Confirm
        title={current?.title ?? ''}
        verb={current?.verb ?? ''}
        said={current?.said ?? ''}
        isOpen={isOpen && current?.asks !== undefined}
        isDangerous={false}
        onClose={() => setOpen(false)}
        {...(current?.undo ? { undo: current.undo } : {})}
        run={() =>
          callAny(current?.operation ?? '', {
            path: { ...project, ...path },
            ...(current?.operation.startsWith('DELETE') ? {} : { body: current?.body ?? {} }),
          })
        }
      >
        {current?.asks?.(row)}
      </Confirm>
    </>
  )
}

/** Switches a definition off and on again, with a way back. */
const Pause = ({
  operation,
  path,
  title,
  isActive,
}: {
  operation: string
  path: Readonly<Record<string, string>>
  title: string
  isActive: boolean
}) => {
  const { path: project } = useProject()
  const refresh = useRefresh()
  const set = (is_active: boolean) => callAny(operation, { path: { ...project, ...path }, body: { is_active } })
  const work = useMutation({
    mutationFn: () => set(!isActive),
    onSuccess: async () => {
      done(isActive ? `“${title}” is paused.` : `“${title}” is active again.`, () => set(isActive).then(refresh))
      await refresh()
    },
    onError: failed,
  })
  return (
    <Button
      variant="default"
      leftSection={isActive ? <PauseIcon size={15} /> : <Play size={15} />}
      loading={work.isPending}
      onClick={() => work.mutate()}
    >
      {isActive ? 'Pause' : 'Resume'}
    </Button>
  )
}

/** Deletes a definition after its name is typed. One that is in use is refused, and deleted only by a second consent. */
const DeleteDefinition = ({
  kind,
  path,
  title,
  isOpen,
  onClose,
}: {
  kind: Kind
  path: Readonly<Record<string, string>>
  title: string
  isOpen: boolean
  onClose: () => void
}) => {
  const { path: project } = useProject()
  const open = useOpen()
  const [consent, setConsent] = useState<string>()
  const at = { ...project, ...path }
  const remove = async (isForced: boolean) => {
    try {
      return await callAny(`DELETE ${rowOf(kind)}`, { path: at, query: isForced ? { force: true } : {} })
    } catch (error) {
      if (!kind.inUse || !(error instanceof TrellisError) || error.code !== kind.inUse.code) throw error
      const { total = 0 } = await callAny(kind.inUse.operation, { path: at, query: { limit: 1 } })
      setConsent(kind.inUse.consent(total))
      throw new Error(kind.inUse.refusal(total))
    }
  }
  return (
    <Confirm
      title={`Delete ${kind.noun}`}
      verb={`Delete ${kind.noun}`}
      said={`“${title}” is deleted.`}
      isOpen={isOpen}
      onClose={() => {
        setConsent(undefined)
        onClose()
      }}
      typed={title}
      consent={consent}
      run={remove}
      after={() => void open(kind.at)}
    >
      “{title}” and what users have of it go for good.
    </Confirm>
  )
}

/** One definition: what it is, what became of it, and its settings in a drawer. */
export const Definition = ({ kind }: { kind: Kind }) => {
  const id = useParam('id')
  const { path: project } = useProject()
  const [{ edit }, setAddress] = useAddress<'edit'>()
  const [isDeleting, setDeleting] = useState(false)
  const path = { [kind.id]: id }
  const { data, error, refetch } = useQuery({
    queryKey: ['definition', kind.path, project.projectId, id],
    queryFn: async () => {
      const { data: found } = await callAny(kind.one?.operation ?? `GET ${rowOf(kind)}`, {
        path: { ...project, ...path },
      })
      return kind.one?.row(found as Row) ?? (found as Row)
    },
  })
  const change = `${kind.update ?? 'PATCH'} ${rowOf(kind)}`
  const document = useDocument(change)
  const schema = document && bodySchema(change, document)
  const wordsFor = (name: string): FieldWords => {
    const title =
      kind.words?.[name]?.title ??
      (document && schema?.properties?.[name] && resolved(schema.properties[name], document).title)
    return { ...kind.words?.[name], ...(title ? { title } : {}) }
  }
  const back = { title: capital(kind.plural), to: kind.at }
  if (error)
    return (
      <>
        <PageHead title={capital(kind.noun)} back={back} />
        <Failure error={error} onRetry={refetch} />
      </>
    )
  if (!data)
    return (
      <>
        <PageHead title={capital(kind.noun)} back={back} />
        <Skeleton h={320} />
      </>
    )
  const title = titleOf(kind, data)
  return (
    <>
      <PageHead
        title={title}
        about={typeof data['description'] === 'string' ? data['description'] : undefined}
        back={back}
        actions={
          <>
            <Button variant="default" onClick={() => setAddress({ edit: 'yes' }, false)}>
              Edit
            </Button>
            {kind.Buttons && <kind.Buttons row={data} />}
            {typeof data['is_active'] === 'boolean' && kind.update !== 'PUT' && (
              <Pause operation={`PATCH ${rowOf(kind)}`} path={path} title={title} isActive={data['is_active']} />
            )}
            <RowActions row={data} path={path} actions={kind.actions ?? []}>
              {kind.canDelete !== false && (
                <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                  Delete {kind.noun}
                </Menu.Item>
              )}
            </RowActions>
          </>
        }
      />
      <div className={kind.hasNoFacts ? undefined : kind.Detail ? 'split' : 'narrow'}>
        {kind.Detail && (
          <div className="column">
            <kind.Detail row={data} />
          </div>
        )}
        {!kind.hasNoFacts && (
          <Card title="Settings">
            <Facts facts={kind.facts?.(data) ?? factsOf(data, wordsFor)} />
          </Card>
        )}
      </div>
      <Drawer opened={edit === 'yes'} onClose={() => setAddress({ edit: undefined })} title={`Edit ${title}`}>
        <OperationForm
          operation={change}
          path={path}
          row={data}
          verb="Save"
          words={kind.words ?? {}}
          onCancel={() => setAddress({ edit: undefined })}
          onDone={() => {
            void setAddress({ edit: undefined })
            done('Saved.')
          }}
        />
      </Drawer>
      <DeleteDefinition kind={kind} path={path} title={title} isOpen={isDeleting} onClose={() => setDeleting(false)} />
    </>
  )
}

const text = (name: string) => wordsOf(name.replace(/_at$/, '').replace(/_id$/, ''))

/** A value for people: times as such, names instead of identifiers, rewards and filters in words. */
export const shownValue = (name: string, value: unknown, choices?: Readonly<Record<string, string>>): ReactNode => {
  if (value === null || value === undefined || value === '') return undefined
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return count(value)
  if (typeof value === 'string') {
    if (/(^|_)at$/.test(name)) return <When at={value} />
    if (choices?.[value]) return choices[value]
    if (/_id$/.test(name)) return <ReferenceName reference={name} value={value} />
    return value
  }
  const reward = rewardWords(value)
  if (reward) return reward
  if (/filter$/.test(name)) return filterWords(value)
  if (name === 'criteria') return criteriaWords(value)
  if (Array.isArray(value))
    return value.every((one) => typeof one !== 'object') ? value.join(', ') : count(value.length)
  const inner = Object.entries(value).filter(([, one]) => one !== null && typeof one !== 'object')
  return inner.map(([key, one]) => `${text(key).toLowerCase()} ${one}`).join(', ')
}

const leftOut = new Set(['id', 'project_id', 'name', 'description', 'metadata', 'icon_url'])
/** The facts of a row in words, without what is empty. */
export const factsOf = (
  row: Row,
  wordsFor: (name: string) => FieldWords = () => ({}),
): readonly (readonly [string, ReactNode])[] =>
  Object.entries(row).flatMap(([name, value]) => {
    const { title = text(name), choices } = wordsFor(name)
    const shown = leftOut.has(name) ? undefined : shownValue(name, value, choices)
    return shown === undefined || shown === '' ? [] : [[title, shown] as const]
  })

/** The three modules of a kind's pages. */
export const pagesOf = (kind: Kind) => ({
  List: () => <DefinitionList kind={kind} />,
  New: () => <NewDefinition kind={kind} />,
  One: () => <Definition kind={kind} />,
})
