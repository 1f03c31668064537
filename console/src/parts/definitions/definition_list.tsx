import { Button, Group } from '@mantine/core'
import { Plus } from 'lucide-react'
import type { Row } from '../../api.ts'
import { List, SearchBox } from '../list.tsx'
import { PageHead, useAddress, useOpen } from '../page.tsx'
import { Empty } from '../states.tsx'
import { capital, type Kind, keyOf, listOf } from './kind.ts'

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
