import { PageHead } from '../parts/page.tsx'
import { DeliveryList } from './delivery_list.tsx'

/** What became of the deliveries of all webhooks. */
export const Page = () => (
  <>
    <PageHead title="Deliveries" about="Each attempt of all webhooks with its answer; what failed can be sent again" />
    <DeliveryList operation="GET /v1/admin/projects/{projectId}/webhooks/deliveries" />
  </>
)
