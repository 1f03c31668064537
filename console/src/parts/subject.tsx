import { ReferenceName } from './form/reference_input.tsx'
import { ProjectLink } from './page.tsx'
import { UserName } from './users.tsx'

const places: Readonly<Record<string, readonly [reference: string, page: string]>> = {
  catalog_item: ['item_id', 'catalog'],
  content: ['content_id', 'content'],
}

/** What a review is about, by its name, and a link to it. */
export const Subject = ({ type, id }: { type: string; id: string }) => {
  if (type === 'user') return <UserName id={id} />
  const [reference, page] = places[type] ?? []
  if (reference)
    return (
      <ProjectLink to={`${page}/${id}`}>
        <ReferenceName reference={reference} value={id} />
      </ProjectLink>
    )
  const collection = type.split(':')[1]
  return collection ? <ProjectLink to={`collections/${collection}`}>a row of {collection}</ProjectLink> : <>the app</>
}
Subject.words = ({ type }: { type: string }) => (type === 'app' ? 'the app' : undefined)
