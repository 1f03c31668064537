import { Button } from '@mantine/core'
import { Plus, Tag } from 'lucide-react'
import { useState } from 'react'
import type { Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { ShortTable } from '../parts/list.tsx'
import { Card, ProjectLink } from '../parts/page.tsx'
import { RowActions } from '../parts/row_actions.tsx'
import { count, done, Empty } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { base, limitWords, type Offer, offersOf, offerWords, priceWords } from './data.ts'

const NewOffer = ({ store }: { store: Row }) => {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return (
    <>
      <Button size="xs" variant="default" leftSection={<Plus size={14} />} onClick={() => setOpen(true)}>
        Add offer
      </Button>
      <Drawer opened={isOpen} onClose={close} title="New offer">
        <OperationForm
          operation={`POST ${base}/offers`}
          path={{ idOrKey: String(store['id']) }}
          words={offerWords}
          verb="Add offer"
          onCancel={close}
          onDone={() => {
            close()
            done('The offer is in the store.')
          }}
        />
      </Drawer>
    </>
  )
}

const Actions = ({ store, offer }: { store: Row; offer: Offer }) => (
  <RowActions
    isQuiet
    row={offer}
    path={{ idOrKey: String(store['id']), offerId: offer.id }}
    actions={[
      {
        title: 'Edit',
        operation: `PATCH ${base}/offers/{offerId}`,
        verb: 'Save offer',
        said: 'Saved.',
        words: offerWords,
        preset: (row) => row,
      },
      {
        title: 'Delete',
        operation: `DELETE ${base}/offers/{offerId}`,
        verb: 'Delete it',
        said: 'The offer is deleted.',
        asks: () => 'An offer that nobody has bought can be deleted; one with purchases is switched off instead.',
      },
    ]}
  />
)

/** The offers of a store, in its order. */
export const Offers = ({ store }: { store: Row }) => {
  const offers = offersOf(store)
  return (
    <Card title="Offers" actions={<NewOffer store={store} />} flush>
      {offers.length === 0 ? (
        <Empty icon={<Tag size={22} />} title="No offers yet">
          An offer is an item of the catalog with a price, limits and a time.
        </Empty>
      ) : (
        <ShortTable<Offer>
          name="Offers of the store"
          rows={offers}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Offer',
              show: (offer) => (
                <>
                  <span className="mono">{offer.key}</span>
                  <span className="cell-sub">
                    {count(offer.quantity)} ×{' '}
                    <ProjectLink to={`catalog/${offer.catalog_item_key}`}>{offer.catalog_item_key}</ProjectLink>
                  </span>
                </>
              ),
            },
            { title: 'Price', show: ({ prices }) => priceWords(prices, "the item's") },
            { title: 'Limits', show: limitWords },
            { title: 'Sold', isNumber: true, show: ({ stock_sold }) => count(stock_sold) },
            { title: 'State', show: ({ is_active }) => <Status value={is_active ? 'active' : 'off'} /> },
            { title: 'Actions', isNumber: true, show: (offer) => <Actions store={store} offer={offer} /> },
          ]}
        />
      )}
    </Card>
  )
}
