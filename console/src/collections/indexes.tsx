import { Button, Menu, MultiSelect, Select, Stack, Switch, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Plus, Zap } from 'lucide-react'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { More } from '../parts/more.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { done, Empty, useRefresh } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { type Collection, columnsOf, one, titleOfColumn } from './data.ts'
import { Frame } from './frame.tsx'

const methods: Readonly<Record<string, string>> = {
  btree: 'Equal, less, more, and sorting',
  gin: 'Inside lists and structured values',
  trgm: 'Parts of texts and typing errors',
  hnsw: 'Nearest vectors',
}

const Form = ({ collection, onClose }: { collection: Collection; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [columns, setColumns] = useState<string[]>([])
  const [method, setMethod] = useState('btree')
  const [isUnique, setUnique] = useState(false)
  const work = useMutation({
    mutationFn: () =>
      callAny(`POST ${one}/indexes`, {
        path: { ...path, name: collection.name },
        body: { columns, method, ...(isUnique ? { unique: true } : {}) },
      }),
    onSuccess: async () => {
      done('The index is made.')
      onClose()
      await refresh()
    },
  })
  useUnsaved([columns, method, isUnique], work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <MultiSelect
          label="Columns"
          description="In the order of the filter: first what is compared, then what is sorted"
          required
          searchable
          data={columnsOf(collection).map(({ name }) => ({ value: name, label: titleOfColumn(name) }))}
          value={columns}
          onChange={setColumns}
          data-autofocus
        />
        <Select
          label="What it is for"
          allowDeselect={false}
          data={Object.entries(methods).map(([value, label]) => ({ value, label }))}
          value={method}
          onChange={(next) => setMethod(next ?? 'btree')}
        />
        {method === 'btree' && (
          <Switch
            label="No two rows have the same values"
            checked={isUnique}
            onChange={(event) => setUnique(event.currentTarget.checked)}
          />
        )}
      </Stack>
      <FormFoot verb="Add index" work={work} onCancel={onClose} isDisabled={columns.length === 0} />
    </form>
  )
}

const Content = ({ collection }: { collection: Collection }) => {
  const { path } = useProject()
  const [{ add }, setAddress] = useAddress<'add'>()
  const [dropped, setDropped] = useState('')
  const [isDropping, setDropping] = useState(false)
  const { name, indexes } = collection
  return (
    <>
      <section className="card" data-flush aria-label="Indexes">
        {indexes.length === 0 ? (
          <Empty
            icon={<Zap size={22} />}
            title="No indexes of your own"
            action={
              <Button variant="default" onClick={() => setAddress({ add: 'index' }, false)}>
                Add index
              </Button>
            }
          >
            Listing the rows of a user, and the newest rows of all, is fast already. An index makes filters on other
            columns fast when there are many rows.
          </Empty>
        ) : (
          <table className="table" data-stack aria-label="Indexes">
            <thead>
              <tr>
                <th scope="col">Columns</th>
                <th scope="col">For</th>
                <th scope="col">Same values</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span className="only-read">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {indexes.map((index) => (
                <tr key={index.name}>
                  <td>
                    <strong>{index.columns.join(', ')}</strong>
                    <span className="cell-sub mono">{index.name}</span>
                  </td>
                  <td data-label="For">{methods[index.method]}</td>
                  <td data-label="Same values">{index.unique ? 'refused' : 'allowed'}</td>
                  <td data-label="State">
                    <Status
                      value={index.is_ready ? 'ready' : 'being built'}
                      meaning={index.is_ready ? 'good' : 'warn'}
                    />
                  </td>
                  <td data-number>
                    <More label={`More about ${index.name}`} isSmall>
                      <Menu.Item
                        c="var(--bad)"
                        onClick={() => {
                          setDropped(index.name)
                          setDropping(true)
                        }}
                      >
                        Drop index
                      </Menu.Item>
                    </More>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <Text size="sm" c="dimmed" mt="sm">
        Whether a filter uses an index is told by “How it is found” above its rows.
      </Text>
      <Drawer opened={add === 'index'} onClose={() => setAddress({ add: undefined })} title={`New index of ${name}`}>
        <Form collection={collection} onClose={() => setAddress({ add: undefined })} />
      </Drawer>
      <Confirm
        title="Drop index"
        verb="Drop index"
        said="The index is dropped."
        isOpen={isDropping}
        onClose={() => setDropping(false)}
        run={() => callAny(`DELETE ${one}/indexes/{index}`, { path: { ...path, name, index: dropped } })}
      >
        Rows stay as they are. Filters that used “{dropped}” become slower.
      </Confirm>
    </>
  )
}

/** The indexes of a collection. */
export const Page = () => {
  const [, setAddress] = useAddress<'add'>()
  return (
    <Frame
      actions={() => (
        <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ add: 'index' }, false)}>
          Add index
        </Button>
      )}
    >
      {(collection) => <Content collection={collection} />}
    </Frame>
  )
}
