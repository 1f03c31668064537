import { useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField } from '../parts/field.tsx'
import { texts } from '../texts.ts'

type Asset = {
  readonly id: string
  readonly filename: string
  readonly mime_type: string
  readonly storage_url: string
  readonly thumbnail_url: string | null
  readonly alt_text: string | null
  readonly size_bytes: number | null
}

const base = '/v1/admin/projects/{projectId}/media'
const pageSize = 48

/** An image as it is, unless the type could hold a script; of everything else the type. */
const Picture = ({ asset }: { asset: Asset }) =>
  /^image\/(?!svg)/.test(asset.mime_type) ? (
    <img src={asset.thumbnail_url ?? asset.storage_url} alt={asset.alt_text ?? asset.filename} loading="lazy" />
  ) : (
    <span class="kind">{asset.mime_type}</span>
  )

type CardProps = { readonly asset: Asset; readonly onSave: (alt: string) => void; readonly onRemove: () => void }

const Card = ({ asset, onSave, onRemove }: CardProps) => {
  const [alt, setAlt] = useState(asset.alt_text ?? '')
  return (
    <li class="card">
      <Picture asset={asset} />
      <a href={asset.storage_url} target="_blank" rel="noreferrer">
        {asset.filename}
      </a>
      <small>{texts.kilobytes(asset.size_bytes ?? 0)}</small>
      <form
        aria-label={texts.describe(asset.filename)}
        onSubmit={(event) => {
          event.preventDefault()
          onSave(alt)
        }}
      >
        <TextField label={texts.altText(asset.filename)} value={alt} onValue={setAlt} />
        <p class="actions">
          <button type="submit">{texts.save}</button>
          <button type="button" class="danger" onClick={onRemove}>
            {texts.removeFile(asset.filename)}
          </button>
        </p>
      </form>
    </li>
  )
}

/** Files of the project as pictures: found by name, type and folder, described, uploaded and deleted. */
export const MediaLibrary = ({ projectId }: PageProps) => {
  const [search, setSearch] = useState('')
  const [asked, setAsked] = useState('')
  const [folder, setFolder] = useState('')
  const [offset, setOffset] = useState(0)
  const [failure, setFailure] = useState<unknown>()
  const [said, setSaid] = useState('')
  const path = { projectId }
  const folders = useLoaded(
    `folders ${projectId}`,
    async () => (await call(`GET ${base}/folders`, { path, query: { limit: 100 } })).data as readonly Row[],
  )
  const files = useLoaded(`files ${projectId} ${asked} ${folder} ${offset}`, () =>
    call(`GET ${base}`, {
      path,
      query: {
        limit: pageSize,
        offset,
        ...(asked === '' ? {} : { search: asked }),
        ...(folder === '' ? {} : { folder_id: folder }),
      },
    }),
  )
  const act = async (work: () => Promise<unknown>, done: string) => {
    setFailure(undefined)
    setSaid('')
    try {
      await work()
      setSaid(done)
    } catch (reason) {
      setFailure(reason)
    }
    files.again()
  }
  const upload = (file: File) =>
    act(async () => {
      const body = { filename: file.name, mime_type: file.type || 'application/octet-stream', size_bytes: file.size }
      const reply = (await call(`POST ${base}/upload`, { path, body })) as unknown as {
        data: { id: string }
        upload_url: string
      }
      const stored = await fetch(reply.upload_url, {
        method: 'PUT',
        body: file,
        headers: { 'content-type': body.mime_type },
        credentials: 'omit',
      })
      if (!stored.ok) throw new Error(texts.notUploaded(stored.status))
      const assetId = reply.data.id
      // reading a file whose bytes have arrived commits it
      await call(`GET ${base}/{assetId}`, { path: { projectId, assetId } })
      if (folder !== '') {
        const into = { path: { projectId, assetId }, body: { folder_id: folder } }
        await call(`PATCH ${base}/{assetId}`, into)
      }
    }, texts.uploaded)
  const remove = ({ id, filename }: Asset) => {
    if (confirm(texts.confirmFile(filename)))
      void act(() => call(`DELETE ${base}/{assetId}`, { path: { projectId, assetId: id } }), texts.done)
  }
  const assets = (files.value?.data ?? []) as readonly Asset[]
  const total = files.value?.total ?? 0
  return (
    <>
      <h1>{texts.mediaLibrary}</h1>
      <form
        class="row"
        aria-label={texts.filters}
        onSubmit={(event) => {
          event.preventDefault()
          setOffset(0)
          setAsked(search)
        }}
      >
        <TextField label={texts.search} type="search" value={search} onValue={setSearch} />
        <ChoiceField
          label={texts.folder}
          value={folder}
          onValue={(next) => {
            setOffset(0)
            setFolder(next)
          }}
        >
          <option value="">{texts.all}</option>
          {(folders.value ?? []).map((one) => (
            <option key={String(one['id'])} value={String(one['id'])}>
              {String(one['name'])}
            </option>
          ))}
        </ChoiceField>
        <button type="submit">{texts.apply}</button>
        <label class="upload">
          {texts.upload}
          <input
            type="file"
            onChange={(event) => {
              const [file] = event.currentTarget.files ?? []
              if (file) void upload(file)
              event.currentTarget.value = ''
            }}
          />
        </label>
      </form>
      <Refusal error={failure ?? files.error ?? folders.error} />
      <p role="status">{said}</p>
      {files.value && assets.length === 0 && <p>{texts.nothing}</p>}
      <ul class="gallery">
        {assets.map((asset) => (
          <Card
            key={asset.id}
            asset={asset}
            onSave={(alt) =>
              act(
                () =>
                  call(`PATCH ${base}/{assetId}`, {
                    path: { projectId, assetId: asset.id },
                    body: { alt_text: alt === '' ? null : alt },
                  }),
                texts.saved,
              )
            }
            onRemove={() => remove(asset)}
          />
        ))}
      </ul>
      {total > 0 && (
        <nav class="pages" aria-label={texts.pages}>
          <span>{texts.count(offset + 1, offset + assets.length, total)}</span>
          <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageSize))}>
            {texts.previous}
          </button>
          <button type="button" disabled={offset + assets.length >= total} onClick={() => setOffset(offset + pageSize)}>
            {texts.next}
          </button>
        </nav>
      )}
    </>
  )
}
