import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField } from '../parts/field.tsx'
import { go } from '../router.ts'
import { texts } from '../texts.ts'

type Column = {
  readonly name: string
  readonly type: string
  readonly is_nullable: boolean
  readonly is_unique: boolean
  readonly max_length: string
}
type Plan = {
  readonly sql: readonly string[]
  readonly estimated_ms: number
  readonly warnings: readonly string[]
}

const newColumn: Column = { name: '', type: 'text', is_nullable: true, is_unique: false, max_length: '' }
/** Those that need no role; docs/collections.md has all. */
const readers = ['owner', 'public', 'member']
const writers = ['owner', 'authenticated', 'member:member']

/** What the server takes; a length is for text alone. */
const columnOf = ({ name, type, is_nullable, is_unique, max_length }: Column) => ({
  name,
  type,
  nullable: is_nullable,
  unique: is_unique,
  ...(max_length === '' || type !== 'text' ? {} : { max_length: Number(max_length) }),
})

type ColumnProps = {
  readonly column: Column
  readonly number: number
  readonly types: readonly string[]
  readonly onColumn: (column: Column) => void
  readonly onRemove: () => void
}

const ColumnFields = ({ column, number, types, onColumn, onRemove }: ColumnProps) => (
  <fieldset class="row">
    <legend>{texts.column(number)}</legend>
    <TextField label={texts.name} value={column.name} onValue={(name) => onColumn({ ...column, name })} isRequired />
    <ChoiceField label={texts.keyType} value={column.type} onValue={(type) => onColumn({ ...column, type })}>
      {types.map((type) => (
        <option key={type} value={type}>
          {type}
        </option>
      ))}
    </ChoiceField>
    {column.type === 'text' && (
      <TextField
        label={texts.maxLength}
        type="number"
        value={column.max_length}
        onValue={(max_length) => onColumn({ ...column, max_length })}
      />
    )}
    <label class="check">
      <input
        type="checkbox"
        checked={column.is_nullable}
        onChange={(event) => onColumn({ ...column, is_nullable: event.currentTarget.checked })}
      />{' '}
      {texts.nullable}
    </label>
    <label class="check">
      <input
        type="checkbox"
        checked={column.is_unique}
        onChange={(event) => onColumn({ ...column, is_unique: event.currentTarget.checked })}
      />{' '}
      {texts.unique}
    </label>
    <button type="button" class="quiet" onClick={onRemove}>
      {texts.removeColumn(number)}
    </button>
  </fieldset>
)

/** A new collection by its columns and policies; the statements that it would run, before it does. */
export const CollectionBuilder = ({ projectId, document }: PageProps) => {
  const types = (document.components.schemas['CollectionColumnType']?.enum ?? []).map(String)
  const [name, setName] = useState('')
  const [scope, setScope] = useState('user')
  const [read, setRead] = useState('owner')
  const [write, setWrite] = useState('owner')
  const [columns, setColumns] = useState<readonly Column[]>([newColumn])
  const [plan, setPlan] = useState<Plan>()
  const [failure, setFailure] = useState<unknown>()
  const send = async (isTrial: boolean) => {
    setFailure(undefined)
    setPlan(undefined)
    const body = { name, owner_scope: scope, read_policy: read, write_policy: write, columns: columns.map(columnOf) }
    try {
      const query = isTrial ? { dry_run: true } : {}
      const { data } = await call('POST /v1/admin/projects/{projectId}/collections', {
        path: { projectId },
        query,
        body,
      })
      if (isTrial) setPlan(data as Plan)
      else go(`/console/projects/${projectId}/collections?item=${encodeURIComponent(name)}`)
    } catch (reason) {
      setFailure(reason)
    }
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    void send(event.submitter?.getAttribute('value') === 'trial')
  }
  const replace = (index: number, column: Column) => setColumns(columns.map((one, n) => (n === index ? column : one)))
  return (
    <>
      <h1>{texts.collectionBuilder}</h1>
      <form onSubmit={submit} aria-label={texts.collectionBuilder}>
        <TextField label={texts.collectionName} value={name} onValue={setName} isRequired />
        <div class="row">
          <ChoiceField label={texts.ownerScope} value={scope} onValue={setScope}>
            <option value="user">user</option>
            <option value="group">group</option>
          </ChoiceField>
          <TextField label={texts.readPolicy} value={read} onValue={setRead} list={readers} isRequired />
          <TextField label={texts.writePolicy} value={write} onValue={setWrite} list={writers} isRequired />
        </div>
        {columns.map((column, index) => (
          <ColumnFields
            key={index}
            column={column}
            number={index + 1}
            types={types}
            onColumn={(next) => replace(index, next)}
            onRemove={() => setColumns(columns.filter((_, n) => n !== index))}
          />
        ))}
        <Refusal error={failure} />
        <p class="actions">
          <button type="button" onClick={() => setColumns([...columns, newColumn])}>
            {texts.addColumn}
          </button>
          <button type="submit" value="trial">
            {texts.dryRun}
          </button>
          <button type="submit">{texts.create}</button>
        </p>
      </form>
      {plan && (
        <section aria-label={texts.plan}>
          <p role="status">{texts.wouldRun(plan.sql.length, plan.estimated_ms)}</p>
          {plan.warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
          <pre>{plan.sql.join(';\n')}</pre>
        </section>
      )}
    </>
  )
}
