import { Button, Code, Menu, Switch } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Plus, SlidersHorizontal } from 'lucide-react'
import { useState } from 'react'
import { listConfigKeys } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { ReferenceName } from '../parts/form/reference_input.tsx'
import { List, SearchBox } from '../parts/list.tsx'
import { More } from '../parts/more.tsx'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { type ConfigKey, change, conditionsOf, create, draftOf, remove, typeWords } from './data.tsx'
import { KeyDrawer } from './key_drawer.tsx'

const shown = (value: unknown): string => {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return `${value.length} values`
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, inner]) => `${name} ${typeof inner === 'object' ? '…' : inner}`)
      .join(', ')
  return String(value)
}

const Toggle = ({ row }: { row: ConfigKey }) => {
  const { projectId } = useProject()
  const refresh = useRefresh()
  const [pending, setPending] = useState<boolean>()
  const isOn = pending ?? row.value === true
  const set = async (value: boolean) => {
    setPending(value)
    try {
      await change(projectId, row.key, { value })
      await refresh()
    } finally {
      setPending(undefined)
    }
  }
  return (
    <Switch
      checked={isOn}
      aria-label={`${row.key} is ${isOn ? 'on' : 'off'}`}
      onChange={() => set(!isOn).then(() => done(`“${row.key}” is ${isOn ? 'off' : 'on'}.`, () => set(isOn)), failed)}
    />
  )
}

const Exceptions = ({ row }: { row: ConfigKey }) => {
  const [one, ...others] = conditionsOf(row)
  if (!one) return <span className="dimmed">none</span>
  return (
    <>
      {one.percentage === null || one.percentage === undefined ? '' : `${one.percentage} % of `}
      {one.segment_id ? <ReferenceName reference="segment_id" value={one.segment_id} /> : 'everyone'}:{' '}
      {shown(one.value)}
      {others.length > 0 && <span className="cell-sub">and {others.length} more</span>}
    </>
  )
}

/** Values that the app reads, and that change without a release. */
export const Page = () => {
  const { projectId, path } = useProject()
  const refresh = useRefresh()
  const [{ q, key }, setAddress] = useAddress<'q' | 'key'>()
  const { data } = useQuery({
    queryKey: ['config', projectId],
    queryFn: async () => (await call(listConfigKeys, { path })).data,
  })
  const row = data?.find((one) => one.key === key)
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ key: '+' }, false)}>
      New key
    </Button>
  )
  const drop = async (gone: ConfigKey) => {
    try {
      await remove(projectId, gone.key)
      done(`“${gone.key}” is deleted.`, () => create(projectId, draftOf(gone)).then(refresh))
      await refresh()
    } catch (error) {
      failed(error)
    }
  }
  return (
    <>
      <PageHead title="Config" about="Values that your app reads, and that change without a release" actions={make} />
      {data && data.length > 8 && <SearchBox label="Search keys" />}
      <List<ConfigKey>
        name="Config"
        operation="GET /v1/admin/projects/{projectId}/config"
        only={(one) => !q || `${one.key} ${one.description ?? ''}`.toLowerCase().includes(q.toLowerCase())}
        keyOf={(one) => one.key}
        onOpen={(one) => setAddress({ key: one.key }, false)}
        columns={[
          {
            title: 'Key',
            show: (one) => (
              <>
                <RowButton isCode onClick={() => setAddress({ key: one.key }, false)}>
                  {one.key}
                </RowButton>
                <span className="cell-sub">{one.description || typeWords[one.value_type]}</span>
              </>
            ),
          },
          {
            title: 'Value',
            show: (one) =>
              typeof one.value === 'boolean' ? (
                <Toggle row={one} />
              ) : typeof one.value === 'number' ? (
                <strong>{shown(one.value)}</strong>
              ) : (
                <span className="clip">{shown(one.value)}</span>
              ),
          },
          { title: 'Exceptions', show: (one) => <Exceptions row={one} /> },
          { title: 'Last change', show: (one) => <When at={one.updated_at} /> },
          {
            title: 'Actions',
            isNumber: true,
            show: (one) => (
              <More label={`More about ${one.key}`} isSmall>
                <Menu.Item onClick={() => setAddress({ key: one.key }, false)}>Edit</Menu.Item>
                <Menu.Item c="var(--bad)" onClick={() => drop(one)}>
                  Delete
                </Menu.Item>
              </More>
            ),
          },
        ]}
        empty={
          <Empty icon={<SlidersHorizontal size={22} />} title="No keys yet" action={make}>
            Texts, limits and switches of your app that you change here. An app reads them with{' '}
            <Code>createConfig(app)</Code>.
          </Empty>
        }
      />
      <KeyDrawer row={row} isOpen={key === '+' || row !== undefined} onClose={() => setAddress({ key: undefined })} />
    </>
  )
}
