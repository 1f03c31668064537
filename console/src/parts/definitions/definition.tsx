import { Button, Menu, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callAny, type Row } from '../../api.ts'
import { Drawer } from '../drawer.tsx'
import { factsOf } from '../facts.tsx'
import { useDocument } from '../form/document.ts'
import type { FieldWords } from '../form/field.ts'
import { OperationForm } from '../form/form.tsx'
import { bodySchema, resolved } from '../form/schema.ts'
import { Card, Facts, PageHead, useAddress, useParam, useProject } from '../page.tsx'
import { RowActions } from '../row_actions.tsx'
import { done, Failure } from '../states.tsx'
import { DeleteDefinition } from './deletion.tsx'
import { capital, type Kind, rowOf, titleOf } from './kind.ts'
import { Pause } from './pause.tsx'

/** One definition: what it is, what became of it, and its settings in a drawer. */
export const Definition = ({ kind }: { kind: Kind }) => {
  const id = useParam('id')
  const { path: project } = useProject()
  const [{ edit }, setAddress] = useAddress<'edit'>()
  const [isDeleting, setDeleting] = useState(false)
  const path = { [kind.id]: id }
  const { data, error, refetch } = useQuery({
    queryKey: ['definition', kind.path, project.projectId, id],
    queryFn: async () => {
      const { data: found } = await callAny(kind.one?.operation ?? `GET ${rowOf(kind)}`, {
        path: { ...project, ...path },
      })
      return kind.one?.row(found as Row) ?? (found as Row)
    },
  })
  const change = `${kind.update ?? 'PATCH'} ${rowOf(kind)}`
  const document = useDocument(change)
  const schema = document && bodySchema(change, document)
  const wordsFor = (name: string): FieldWords => {
    const title =
      kind.words?.[name]?.title ??
      (document && schema?.properties?.[name] && resolved(schema.properties[name], document).title)
    return { ...kind.words?.[name], ...(title ? { title } : {}) }
  }
  const back = { title: capital(kind.plural), to: kind.at }
  if (error)
    return (
      <>
        <PageHead title={capital(kind.noun)} back={back} />
        <Failure error={error} onRetry={refetch} />
      </>
    )
  if (!data)
    return (
      <>
        <PageHead title={capital(kind.noun)} back={back} />
        <Skeleton h={320} />
      </>
    )
  const title = titleOf(kind, data)
  return (
    <>
      <PageHead
        title={title}
        about={typeof data['description'] === 'string' ? data['description'] : undefined}
        back={back}
        actions={
          <>
            <Button variant="default" onClick={() => setAddress({ edit: 'yes' }, false)}>
              Edit
            </Button>
            {kind.Buttons && <kind.Buttons row={data} />}
            {typeof data['is_active'] === 'boolean' && kind.update !== 'PUT' && (
              <Pause operation={`PATCH ${rowOf(kind)}`} path={path} title={title} isActive={data['is_active']} />
            )}
            <RowActions row={data} path={path} actions={kind.actions ?? []}>
              {kind.canDelete !== false && (
                <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                  Delete {kind.noun}
                </Menu.Item>
              )}
            </RowActions>
          </>
        }
      />
      <div className={kind.hasNoFacts ? undefined : kind.Detail ? 'split' : 'narrow'}>
        {kind.Detail && (
          <div className="column">
            <kind.Detail row={data} />
          </div>
        )}
        {!kind.hasNoFacts && (
          <Card title="Settings">
            <Facts facts={kind.facts?.(data) ?? factsOf(data, wordsFor)} />
          </Card>
        )}
      </div>
      <Drawer opened={edit === 'yes'} onClose={() => setAddress({ edit: undefined })} title={`Edit ${title}`}>
        <OperationForm
          operation={change}
          path={path}
          row={data}
          verb="Save"
          words={kind.words ?? {}}
          onCancel={() => setAddress({ edit: undefined })}
          onDone={() => {
            void setAddress({ edit: undefined })
            done('Saved.')
          }}
        />
      </Drawer>
      <DeleteDefinition kind={kind} path={path} title={title} isOpen={isDeleting} onClose={() => setDeleting(false)} />
    </>
  )
}
