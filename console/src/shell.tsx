import { useEffect, useState } from 'preact/hooks'
import { call, type Row, signOut } from './api.ts'
import { type Document, inputOf, type Resource, resourcesOf } from './document.ts'
import { Form, Refusal } from './form.tsx'
import { useLoaded } from './load.ts'
import { Overview } from './pages/overview.tsx'
import { pages } from './pages.ts'
import { ResourcePage } from './resource.tsx'
import { go } from './router.ts'
import { texts } from './texts.ts'

const projectPath = (projectId: string) => `/console/projects/${projectId}`

const Projects = ({ document }: { document: Document }) => {
  const { value, error } = useLoaded('projects', () => call('GET /v1/admin/projects', { query: { limit: 100 } }))
  const projects = (value?.data ?? []) as readonly Row[]
  const create = document.paths['/v1/admin/projects']?.post
  const make = async (body: Record<string, unknown>) => {
    const { data } = await call('POST /v1/admin/projects', { body })
    const made = data as { id?: string; project?: { id: string } }
    go(projectPath(made.project?.id ?? made.id ?? ''))
  }
  return (
    <>
      <h1>{texts.projects}</h1>
      <Refusal error={error} />
      {!value && !error && <p role="status">{texts.loading}</p>}
      <ul class="cards">
        {projects.map((project) => (
          <li key={String(project['id'])}>
            <a href={projectPath(String(project['id']))}>{String(project['name'])}</a>
          </li>
        ))}
      </ul>
      <h2>{texts.newProject}</h2>
      {create && (
        <Form
          name={texts.newProject}
          schema={inputOf(create) ?? {}}
          named={document.components.schemas}
          submit={texts.create}
          onSubmit={make}
        />
      )}
    </>
  )
}

const Areas = ({
  resources,
  projectId,
  current,
}: {
  resources: readonly Resource[]
  projectId: string
  current: string
}) => (
  <nav aria-label={texts.areas} class="areas">
    <section>
      <h2>{texts.look}</h2>
      <ul>
        <li>
          <a href={projectPath(projectId)} aria-current={current === '' ? 'page' : undefined}>
            {texts.overview}
          </a>
        </li>
        {pages
          .filter(({ rowOf }) => rowOf === undefined)
          .map(({ path, title }) => (
            <li key={path}>
              <a href={`${projectPath(projectId)}/${path}`} aria-current={path === current ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        <li>
          <a href={`/v1/admin/projects/${projectId}/graphql`}>{texts.graphql}</a>
        </li>
      </ul>
    </section>
    {[...new Set(resources.map(({ part }) => part))].map((part) => (
      <section key={part}>
        <h2>{part}</h2>
        <ul>
          {resources
            .filter((resource) => resource.part === part)
            .map(({ path, title }) => (
              <li key={path}>
                <a href={`${projectPath(projectId)}/${path}`} aria-current={path === current ? 'page' : undefined}>
                  {title}
                </a>
              </li>
            ))}
        </ul>
      </section>
    ))}
  </nav>
)

const Project = ({
  document,
  address,
  projectId,
  rest,
}: {
  document: Document
  address: URL
  projectId: string
  rest: string
}) => {
  const resources = resourcesOf(document)
  const resource = resources.find(({ path }) => path === rest)
  const page = pages.find(({ path }) => path === rest)
  const id = address.searchParams.get('item') ?? ''
  const { value, error } = useLoaded(projectId, () =>
    call('GET /v1/admin/projects/{projectId}', { path: { projectId } }),
  )
  const project = (value?.data ?? {}) as Row
  return (
    <div class="project">
      <Areas resources={resources} projectId={projectId} current={rest} />
      <main id="content" tabIndex={-1}>
        <p>{String(project['name'] ?? '')}</p>
        <Refusal error={error} />
        {resource && <ResourcePage document={document} resource={resource} projectId={projectId} address={address} />}
        {page && (
          <page.Show key={`${page.path} ${id}`} document={document} projectId={projectId} address={address} id={id} />
        )}
        {rest === '' && <Overview projectId={projectId} rows={project} />}
        {!resource && !page && rest !== '' && <h1>{texts.notFound}</h1>}
      </main>
    </div>
  )
}

const places: Readonly<Record<string, string>> = { u: 'users', s: 'streaks', e: 'events' }

/** `g` and a letter go somewhere, `?` shows how; not while one types. */
const useKeys = (projectId: string | undefined, onHelp: () => void) => {
  useEffect(() => {
    let isGoing = false
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select') !== null
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === '?') onHelp()
      const place = places[event.key]
      if (isGoing && event.key === 'p') go('/console')
      if (isGoing && place && projectId) go(`${projectPath(projectId)}/${place}`)
      isGoing = event.key === 'g'
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [projectId, onHelp])
}

export const Shell = ({ document, address }: { document: Document; address: URL }) => {
  const [, projectId, rest = ''] = /^\/console\/projects\/([^/]+)\/?(.*)$/.exec(address.pathname) ?? []
  const [hasHelp, setHelp] = useState(false)
  const [failure, setFailure] = useState<unknown>()
  useKeys(projectId, () => setHelp((before) => !before))
  return (
    <>
      <a class="skip" href="#content">
        {texts.skip}
      </a>
      <header>
        <a href="/console">{texts.product}</a>
        <a href="/console">{texts.projects}</a>
        <button type="button" class="quiet" onClick={() => signOut().catch(setFailure)}>
          {texts.signOut}
        </button>
      </header>
      <Refusal error={failure} />
      {hasHelp && <p role="status">{texts.keyboard}</p>}
      {projectId ? (
        <Project key={projectId} document={document} address={address} projectId={projectId} rest={rest} />
      ) : (
        <main id="content" tabIndex={-1}>
          <Projects document={document} />
        </main>
      )}
    </>
  )
}
