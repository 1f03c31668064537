import { Button, Group, Menu, Text } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { useQueryClient } from '@tanstack/react-query'
import { Columns3, Plus, RefreshCw, Rows3 } from 'lucide-react'
import { useState } from 'react'
import { adminUpdateRow } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { SearchBox } from '../parts/list.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { count, counted, Empty, Failure, failed, Rows } from '../parts/states.tsx'
import { AsUser, seenBy } from './as_user.tsx'
import { ColumnDrawer } from './column_drawer.tsx'
import { type Collection, type CollectionColumn, columnsOf, policyWord } from './data.ts'
import { deleteRows, usePending } from './deletion.ts'
import { FilterBar } from './filter_bar.tsx'
import { filterOf, orderOf, readConditions, writeConditions } from './filters.ts'
import { Frame } from './frame.tsx'
import { Grid } from './grid/grid.tsx'
import { UserSelect } from './names.tsx'
import { PlanDrawer } from './plan.tsx'
import { RowPanel } from './row_panel.tsx'
import { exportRows, ImportDialog } from './transfer.tsx'
import { mostRows, putRow, useRowWindow } from './use_rows.ts'
import { useUndo } from './use_undo.ts'
import { rowTitle, shownText } from './values.ts'

type Keys = 'q' | 'where' | 'sort' | 'row' | 'column' | 'as' | 'plan' | 'import'

const short = (text: string) => (text.length > 40 ? `${text.slice(0, 39)}…` : text)

const Content = ({ collection }: { collection: Collection }) => {
  const { name } = collection
  const { projectId, path } = useProject()
  const client = useQueryClient()
  const [address, setAddress] = useAddress<Keys>()
  const { q = '', where, sort, row: openRow, column: openColumn, as: userId } = address
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [hidden, setHidden] = useLocalStorage<readonly string[]>({
    key: `trellis-hidden-${projectId}-${name}`,
    defaultValue: ['updated_at', 'id'],
    getInitialValueInEffect: false,
  })
  const pending = usePending(projectId, name)
  const columns = columnsOf(collection)
  const conditions = readConditions(where)
  const seen = userId ? (seenBy(collection, userId) ?? []) : []
  const filter = filterOf(columns, [...conditions, ...seen], q, pending)
  const order = orderOf(sort)
  const { total, rowAt, error, retry, onRange } = useRowWindow(collection, { filter, order })
  const did = useUndo()

  const put = async (row: Row, column: CollectionColumn, value: unknown) => {
    const id = String(row['id'])
    putRow(projectId, name, { id, [column.name]: value })
    try {
      const body = { [column.name]: value }
      const { data } = await call(adminUpdateRow, { path: { ...path, name, id }, body })
      putRow(projectId, name, data as Row)
    } catch (error) {
      putRow(projectId, name, { id, [column.name]: row[column.name] })
      throw error
    }
  }
  const change = async (row: Row, column: CollectionColumn, value: unknown) => {
    try {
      await put(row, column, value)
    } catch (error) {
      failed(error)
      return
    }
    const words = value === null ? 'emptied' : `now ${short(shownText(column, value))}`
    did(`${column.name} of “${short(rowTitle(row))}” is ${words}.`, () =>
      put({ ...row, [column.name]: value }, column, row[column.name] ?? null),
    )
  }
  const remove = (ids: readonly string[]) => {
    did(`${counted(ids.length, 'row')} deleted.`, deleteRows(projectId, name, ids))
    setSelected(new Set())
  }
  const isAll = conditions.length === 0 && q === '' && !userId
  const visible = columns.filter((column) => !hidden.includes(column.name))
  const add = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ row: 'new' }, false)}>
      Add row
    </Button>
  )
  return (
    <>
      <Group gap="xs" mb="sm" justify="space-between">
        <Group gap={6}>
          <SearchBox label="Search rows" placeholder="Search the texts" />
          <FilterBar
            columns={columns}
            conditions={conditions}
            onConditions={(next) => setAddress({ where: writeConditions(next) }, false)}
            hidden={hidden}
            onHidden={setHidden}
          />
        </Group>
        <Group gap={6}>
          <UserSelect
            isBare
            label="As a user of the app"
            size="xs"
            w={190}
            value={userId}
            onChange={(id) => setAddress({ as: id }, false)}
          />
          <Button variant="default" size="xs" onClick={() => setAddress({ plan: 'yes' }, false)}>
            How it is found
          </Button>
        </Group>
      </Group>
      {userId && <AsUser collection={collection} userId={userId} />}
      {error && <Failure error={error} onRetry={retry} />}
      {total === undefined ? (
        !error && (
          <div className="card" data-flush>
            <Rows height={34} count={14} />
          </div>
        )
      ) : total === 0 ? (
        <div className="card">
          <Empty
            icon={<Rows3 size={22} />}
            title={isAll ? 'No rows yet' : 'No row matches'}
            action={
              isAll ? (
                add
              ) : (
                <Button variant="default" onClick={() => setAddress({ where: undefined, q: undefined, as: undefined })}>
                  Take all filters away
                </Button>
              )
            }
          >
            {isAll && `Apps add them as ${policyWord(collection.write_policy)}; you can add or import some here.`}
          </Empty>
        </div>
      ) : (
        <Grid
          name={`Rows of ${name}`}
          columns={visible}
          total={total}
          rowAt={rowAt}
          onRange={onRange}
          sort={sort}
          onSort={(next) => setAddress({ sort: next })}
          selected={selected}
          onSelect={setSelected}
          onChange={change}
          onRefused={failed}
          onOpen={(row) => setAddress({ row: String(row['id']) }, false)}
          onDelete={remove}
          onAddColumn={() => setAddress({ column: '+' }, false)}
        />
      )}
      <Group justify="space-between" mt="xs" mih={30}>
        {selected.size > 0 ? (
          <Group gap="xs">
            <Text size="sm" fw={600} role="status">
              {counted(selected.size, 'row')} selected
            </Text>
            <Button size="compact-sm" color="red.8" onClick={() => remove([...selected])}>
              Delete
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setSelected(new Set())}>
              Select none
            </Button>
          </Group>
        ) : (
          <Text size="sm" c="dimmed" role="status">
            {total === undefined ? ' ' : counted(total, 'row')}
            {total !== undefined && total > mostRows && `, the first ${count(mostRows)} are shown`}
          </Text>
        )}
        <Group gap="xs">
          <Text size="xs" c="dimmed" className="only-wide">
            Arrows move, a letter or Enter edits, Escape leaves as it was, Ctrl-Z takes back
          </Text>
          <Button
            size="compact-xs"
            variant="subtle"
            color="gray"
            leftSection={<RefreshCw size={13} />}
            onClick={() => client.invalidateQueries({ queryKey: ['rows', projectId, name] })}
          >
            Read again
          </Button>
        </Group>
      </Group>
      <RowPanel
        collection={collection}
        id={openRow}
        onClose={() => setAddress({ row: undefined })}
        onDelete={(id) => remove([id])}
      />
      <ColumnDrawer collection={collection} name={openColumn} onClose={() => setAddress({ column: undefined })} />
      <PlanDrawer
        collection={collection}
        filter={filterOf(columns, conditions, q)}
        order={order}
        userId={userId}
        isOpen={address.plan === 'yes'}
        onClose={() => setAddress({ plan: undefined })}
      />
      <ImportDialog
        collection={collection}
        isOpen={address.import === 'yes'}
        onClose={() => setAddress({ import: undefined })}
      />
    </>
  )
}

/** The rows of a collection. */
export const Page = () => {
  const { projectId } = useProject()
  const [, setAddress] = useAddress<Keys>()
  return (
    <Frame
      actions={({ name }) => (
        <>
          <Menu>
            <Menu.Target>
              <Button variant="default">Import or export</Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item onClick={() => setAddress({ import: 'yes' }, false)}>Import CSV or JSON</Menu.Item>
              <Menu.Item onClick={() => exportRows(projectId, name, 'csv')}>Export as CSV</Menu.Item>
              <Menu.Item onClick={() => exportRows(projectId, name, 'ndjson')}>Export as JSON lines</Menu.Item>
            </Menu.Dropdown>
          </Menu>
          <Button
            variant="default"
            leftSection={<Columns3 size={16} />}
            onClick={() => setAddress({ column: '+' }, false)}
          >
            Add column
          </Button>
          <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ row: 'new' }, false)}>
            Add row
          </Button>
        </>
      )}
    >
      {(collection) => <Content key={collection.name} collection={collection} />}
    </Frame>
  )
}
