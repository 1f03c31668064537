import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { texts } from '../texts.ts'

type Verified = {
  readonly verified: boolean
  readonly checked: number
  readonly first_broken_id: string | null
  readonly sealed_through_id: string | null
  readonly unsealed: number
}

/** Whether the trail is whole: no row changed, removed, inserted or cut off. */
export const AuditVerify = ({ projectId }: PageProps) => {
  const [found, setFound] = useState<Verified>()
  const [failure, setFailure] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const verify = async () => {
    setBusy(true)
    setFailure(undefined)
    try {
      const { data } = await call('GET /v1/admin/projects/{projectId}/audit-events/verify', { path: { projectId } })
      setFound(data as Verified)
    } catch (reason) {
      setFailure(reason)
    }
    setBusy(false)
  }
  return (
    <>
      <h1>{texts.auditVerify}</h1>
      <p>{texts.auditAbout}</p>
      <button type="button" disabled={isBusy} onClick={verify}>
        {texts.verify}
      </button>
      <Refusal error={failure} />
      {found && (
        <p role="status" class={found.verified ? 'good' : 'refusal'}>
          {found.verified ? texts.isWhole(found.checked, found.unsealed) : texts.isBroken(found.first_broken_id ?? '')}
        </p>
      )}
    </>
  )
}
