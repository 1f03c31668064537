import { Alert, Code, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { explainRows } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { useProject } from '../parts/page.tsx'
import { count, counted, Failure } from '../parts/states.tsx'
import type { Collection } from './data.ts'
import { UserName } from './names.tsx'

/** How Postgres would find the rows that are shown, for the developer or as a user of the app. */
export const PlanDrawer = ({
  collection,
  filter,
  order,
  userId,
  isOpen,
  onClose,
}: {
  collection: Collection
  filter: object | undefined
  order: readonly object[] | undefined
  userId: string | undefined
  isOpen: boolean
  onClose: () => void
}) => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['plan', path.projectId, collection.name, filter, order, userId],
    enabled: isOpen,
    queryFn: async () => {
      const body = {
        limit: 100,
        ...(filter ? { filter } : {}),
        ...(order ? { order } : {}),
        ...(userId ? { user_id: userId } : {}),
      }
      return (await call(explainRows, { path: { ...path, name: collection.name }, body: body as never })).data
    },
  })
  const scans = data?.scans.filter(({ table }) => table !== 'collections') ?? []
  const slow = scans.find(({ node, table }) => node === 'Seq Scan' && table === collection.name)
  const isLarge = collection.row_count_estimate > 10_000
  return (
    <Drawer opened={isOpen} onClose={onClose} title="How the database finds these rows" size="xl">
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={240} />}
      {data && (
        <Stack gap="md">
          <Text size="sm">
            {userId ? (
              <>
                As <UserName id={userId} /> would ask in the app, with the access rules of the collection.
              </>
            ) : (
              'As you ask here: a developer sees every row.'
            )}{' '}
            The estimated cost is {count(Math.round(data.cost))}.
          </Text>
          {slow && isLarge ? (
            <Alert color="yellow" title="It reads the whole table">
              With {count(collection.row_count_estimate)} rows an index on the columns of the filter or the order helps.
            </Alert>
          ) : (
            <Alert color="leaf" title={slow ? 'It reads the whole table, which is small' : 'It uses an index'} />
          )}
          <ul className="plain">
            {scans.map(({ node, table, index, rows }, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the steps have no name of their own
              <li key={at}>
                {index ? `Reads ${table} by the index ${index}` : `Reads all of ${table ?? 'a result'}`}, some{' '}
                {counted(Math.round(rows), 'row')} ({node})
              </li>
            ))}
          </ul>
          <Title order={3}>The plan</Title>
          <Code block data-code tabIndex={0}>
            {data.plan.join('\n')}
          </Code>
        </Stack>
      )}
    </Drawer>
  )
}
