import { useEffect, useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField } from '../parts/field.tsx'
import { choicesOf, isWhole, type Leaf, newLeaf, rulesOf, sources } from '../parts/rules.ts'
import { go } from '../router.ts'
import { texts } from '../texts.ts'

type Preview = {
  readonly count: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly sample: readonly Row[]
}

const pauseMs = 400

const Condition = ({
  leaf,
  number,
  onLeaf,
  onRemove,
}: {
  leaf: Leaf
  number: number
  onLeaf: (leaf: Leaf) => void
  onRemove: () => void
}) => {
  const source = leaf['source'] ?? ''
  return (
    <fieldset class="row">
      <legend>{texts.condition(number)}</legend>
      <ChoiceField label={texts.source} value={source} onValue={(next) => onLeaf(newLeaf(next))}>
        {Object.keys(sources).map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </ChoiceField>
      {(sources[source] ?? []).map((field) => {
        const choices = choicesOf(source, field)
        const common = {
          key: field,
          label: field.replaceAll('_', ' '),
          value: leaf[field] ?? '',
          onValue: (text: string) => onLeaf({ ...leaf, [field]: text }),
        }
        return choices ? (
          <ChoiceField {...common} key={field}>
            {choices.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </ChoiceField>
        ) : (
          <TextField {...common} key={field} />
        )
      })}
      <button type="button" class="quiet" onClick={onRemove}>
        {texts.removeCondition(number)}
      </button>
    </fieldset>
  )
}

/** Rules of a segment by conditions, with the number of users who match them, as one types. */
export const SegmentBuilder = ({ projectId }: PageProps) => {
  const [join, setJoin] = useState('and')
  const [leaves, setLeaves] = useState<readonly Leaf[]>([newLeaf()])
  const [preview, setPreview] = useState<Preview>()
  const [failure, setFailure] = useState<unknown>()
  const [name, setName] = useState('')
  const [key, setKey] = useState('')
  const rules = JSON.stringify(rulesOf(join, leaves))
  const canAsk = isWhole(leaves)
  useEffect(() => {
    if (!canAsk) {
      setPreview(undefined)
      return
    }
    let isWanted = true
    const timer = setTimeout(() => {
      call('POST /v1/admin/projects/{projectId}/segments/preview', {
        path: { projectId },
        body: { rules: JSON.parse(rules) },
      }).then(
        ({ data }) => {
          if (!isWanted) return
          setPreview(data as Preview)
          setFailure(undefined)
        },
        (reason: unknown) => {
          if (!isWanted) return
          setPreview(undefined)
          setFailure(reason)
        },
      )
    }, pauseMs)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [rules, canAsk, projectId])
  const save = async (event: Event) => {
    event.preventDefault()
    try {
      await call('POST /v1/admin/projects/{projectId}/segments', {
        path: { projectId },
        body: { key, name, rules: JSON.parse(rules) },
      })
      go(`/console/projects/${projectId}/segments`)
    } catch (reason) {
      setFailure(reason)
    }
  }
  const replace = (index: number, leaf: Leaf) => setLeaves(leaves.map((one, n) => (n === index ? leaf : one)))
  return (
    <>
      <h1>{texts.segmentBuilder}</h1>
      <form onSubmit={save} aria-label={texts.segmentBuilder}>
        <ChoiceField label={texts.match} value={join} onValue={setJoin}>
          <option value="and">{texts.allOf}</option>
          <option value="or">{texts.anyOf}</option>
        </ChoiceField>
        {leaves.map((leaf, index) => (
          <Condition
            key={index}
            leaf={leaf}
            number={index + 1}
            onLeaf={(next) => replace(index, next)}
            onRemove={() => setLeaves(leaves.filter((_, n) => n !== index))}
          />
        ))}
        <button type="button" onClick={() => setLeaves([...leaves, newLeaf()])}>
          {texts.addCondition}
        </button>
        <p role="status" class="count">
          {preview
            ? texts.matching(preview.count, preview.is_estimate ? preview.margin : null)
            : canAsk
              ? texts.counting
              : texts.incomplete}
        </p>
        <Refusal error={failure} />
        {preview && preview.sample.length > 0 && (
          <ul class="chips" aria-label={texts.sample}>
            {preview.sample.map((user) => (
              <li key={String(user['id'])}>
                <a href={`/console/projects/${projectId}/user/timeline?item=${String(user['id'])}`}>
                  {String(user['display_name'])}
                </a>
              </li>
            ))}
          </ul>
        )}
        <details>
          <summary>JSON</summary>
          <pre>{JSON.stringify(JSON.parse(rules), null, 2)}</pre>
        </details>
        <div class="row">
          <TextField label={texts.key} value={key} onValue={setKey} isRequired />
          <TextField label={texts.name} value={name} onValue={setName} isRequired />
          <button type="submit">{texts.create}</button>
        </div>
      </form>
    </>
  )
}
