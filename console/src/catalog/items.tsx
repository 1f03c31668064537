import { Badge, Button, Group } from '@mantine/core'
import { Package } from 'lucide-react'
import { useState } from 'react'
import type { Row } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { factsOf } from '../parts/facts.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List as Entries } from '../parts/list.tsx'
import { Card, ProjectLink } from '../parts/page.tsx'
import { count, done, Empty, When } from '../parts/states.tsx'
import { Cell, useTotal } from '../parts/stats.tsx'
import { UserName } from '../parts/users.tsx'
import { MoveItems } from './move.tsx'

const base = '/v1/admin/projects/{projectId}/catalog/{idOrKey}'
type Price = { readonly currency_code: string; readonly price: number }
type Content = {
  readonly quantity: number
  readonly catalog_items: { readonly key: string; readonly name: string }
}

const types: Readonly<Record<string, string>> = {
  consumable: 'Used up',
  durable: 'Owned once',
  bundle: 'Bundle',
  currency_pack: 'Currency pack',
}
const pricesOf = (row: Row) => (row['catalog_item_prices'] ?? []) as readonly Price[]
const contentsOf = (row: Row) => (row['bundle_contents'] ?? []) as readonly Content[]
const priceWords = (row: Row) =>
  pricesOf(row)
    .map(({ currency_code, price }) => `${count(price)} ${currency_code}`)
    .join(' or ') || 'not for sale'

const holders = 'GET /v1/admin/projects/{projectId}/inventory'

/** A part of an item that is replaced as a whole, in a drawer. */
const Replace = ({
  row,
  part,
  title,
  words,
  value,
}: {
  row: Row
  part: 'prices' | 'contents'
  title: string
  words: NonNullable<Kind['words']>
  value: readonly unknown[]
}) => {
  const [isOpen, setOpen] = useState(false)
  const name = part === 'prices' ? 'prices' : 'bundle_contents'
  return (
    <>
      <Button size="xs" variant="default" onClick={() => setOpen(true)}>
        Edit {part}
      </Button>
      <Drawer opened={isOpen} onClose={() => setOpen(false)} title={title}>
        <OperationForm
          operation={`PUT ${base}/${part}`}
          path={{ idOrKey: String(row['id']) }}
          preset={{ [name]: value }}
          words={words}
          verb={`Save ${part}`}
          onCancel={() => setOpen(false)}
          onDone={() => {
            setOpen(false)
            done('Saved.')
          }}
        />
      </Drawer>
    </>
  )
}

const Holders = ({ row }: { row: Row }) => (
  <Cell answer={useTotal(holders, {}, { item_key: String(row['key']) })} show={(total: number) => count(total)} />
)

const Detail = ({ row }: { row: Row }) => {
  const total = useTotal(holders, {}, { item_key: String(row['key']) })
  const isBundle = row['item_type'] === 'bundle'
  return (
    <>
      <div className="cards">
        <Figure title="Users have it" value={count(total.data)} about="stacks in inventories" />
        <Figure title="Price" value={priceWords(row)} />
        <Figure title="Kind" value={types[String(row['item_type'])] ?? ''} />
      </div>
      <div className="pair">
        <Card
          title="Prices"
          actions={
            <Replace
              row={row}
              part="prices"
              title={`Prices of ${row['name']}`}
              value={pricesOf(row)}
              words={{
                prices: { title: 'Prices', help: 'One for each currency that buys it' },
                'prices.currency_code': { title: 'Currency' },
                'prices.price': { title: 'Price' },
              }}
            />
          }
        >
          {pricesOf(row).length === 0 ? (
            <Empty title="Not for sale">Without a price it can be granted, and not be bought.</Empty>
          ) : (
            <Group gap="xs">
              {pricesOf(row).map(({ currency_code, price }) => (
                <Badge key={currency_code} variant="default" size="lg">
                  {count(price)} {currency_code}
                </Badge>
              ))}
            </Group>
          )}
        </Card>
        {isBundle && (
          <Card
            title="Contents"
            actions={
              <Replace
                row={row}
                part="contents"
                title={`Contents of ${row['name']}`}
                value={contentsOf(row).map(({ catalog_items, quantity }) => ({
                  content_item_key: catalog_items.key,
                  quantity,
                }))}
                words={{
                  bundle_contents: { title: 'Items' },
                  'bundle_contents.content_item_key': { title: 'Item' },
                  'bundle_contents.quantity': { title: 'How many' },
                }}
              />
            }
          >
            {contentsOf(row).length === 0 ? (
              <Empty title="Nothing in it yet" />
            ) : (
              <ul className="numbered">
                {contentsOf(row).map(({ catalog_items: of, quantity }) => (
                  <li key={of.key} className="links">
                    {count(quantity)} × <ProjectLink to={`catalog/${of.key}`}>{of.name}</ProjectLink>
                  </li>
                ))}
              </ul>
            )}
          </Card>
        )}
      </div>
      <Card title="Who has it" flush>
        <Entries<Row>
          name="Who has it"
          isInside
          operation={holders}
          query={{ item_key: String(row['key']), include: 'user' }}
          columns={[
            {
              title: 'User',
              show: (stack) => (
                <UserName id={stack['app_user_id'] as string} user={stack['user'] as { display_name: string } | null} />
              ),
            },
            { title: 'How many', isNumber: true, show: (stack) => count(stack['quantity'] as number) },
            { title: 'Since', show: (stack) => <When at={stack['created_at'] as string} /> },
          ]}
          empty={
            <Empty icon={<Package size={22} />} title="Nobody has it yet">
              Users buy it, get it as a reward, or from you.
            </Empty>
          }
        />
      </Card>
    </>
  )
}

const words: NonNullable<Kind['words']> = {
  name: { section: 'The item' },
  key: { section: 'The item' },
  description: { section: 'The item' },
  icon_url: { title: 'Picture', section: 'The item' },
  item_type: { title: 'Kind', help: 'It never changes', section: 'The item', choices: types },
  use_effect: { title: 'Gives when it is used', section: 'What it does' },
  duration_seconds: { title: 'Lasts', help: 'Seconds; for ever if empty', section: 'What it does' },
  max_owned: { title: 'At most of a user', help: 'Any number if empty', section: 'What it does' },
  prices: { title: 'Prices', help: 'One for each currency that buys it', section: 'Prices' },
  'prices.currency_code': { title: 'Currency' },
  'prices.price': { title: 'Price' },
  bundle_contents: { title: 'Contents', help: 'Only of a bundle', section: 'Prices' },
  'bundle_contents.content_item_key': { title: 'Item' },
  'bundle_contents.quantity': { title: 'How many' },
  category: { section: 'Finding it' },
  tags: { title: 'Tags', section: 'Finding it' },
  metadata: { title: 'Your own values', section: 'Finding it' },
  is_active: { title: 'Active', section: 'Finding it' },
}

const kind: Kind = {
  path: 'catalog',
  id: 'idOrKey',
  at: 'catalog',
  noun: 'item',
  plural: 'items',
  icon: Package,
  about: 'What users can buy, win and own in your app',
  empty: 'Items are what users own in your app: potions, skins, bundles of both, packs of coins.',
  search: 'search',
  query: { include_inactive: true },
  columns: [
    named('catalog'),
    { title: 'Kind', show: (row) => types[String(row['item_type'])] },
    { title: 'Price', show: priceWords },
    {
      title: 'Tags',
      show: (row) => [row['category'], ...(row['tags'] as readonly string[])].filter(Boolean).join(', ') || '—',
    },
    {
      title: 'Users',
      isNumber: true,
      show: (row) => <Holders row={row} />,
    },
    activeColumn,
  ],
  words,
  preset: { item_type: 'consumable', is_active: true },
  facts: ({ catalog_item_prices: _, bundle_contents: __, item_type: ___, ...row }) =>
    factsOf(row, (name) => words[name] ?? {}),
  Detail,
  Buttons: ({ row }) => <MoveItems kind="grant" item={String(row['key'])} />,
}
export const { List, New, One } = pagesOf(kind)
