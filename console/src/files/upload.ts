import { useState } from 'react'
import { adminGetMedia, adminUploadMedia, updateMedia } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import { counted, done, failed, sentenceOf, useRefresh } from '../parts/states.tsx'
import { ownUrl } from './data.ts'

export type Sending = {
  readonly id: number
  readonly name: string
  readonly share: number
  readonly problem?: string
}

const types: Readonly<Record<string, string>> = { md: 'text/plain', csv: 'text/plain', txt: 'text/plain' }

const put = (url: string, file: File, type: string, told: (share: number) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('PUT', url)
    request.setRequestHeader('content-type', type)
    request.upload.onprogress = ({ loaded }) => told(loaded / Math.max(1, file.size))
    request.onload = () => {
      if (request.status < 300) return resolve()
      let message = 'The storage refused the file.'
      try {
        message = (JSON.parse(request.responseText) as { error: { message: string } }).error.message
      } catch {
        // no sentence came: ours stays
      }
      reject(new Error(message))
    }
    request.onerror = () => reject(new Error('The upload has broken off.'))
    request.send(file)
  })

let lastId = 0

/** Uploads files of the project, two at a time, and tells how far each is. */
export const useUpload = (folderId: string | undefined) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [sendings, setSendings] = useState<readonly Sending[]>([])
  const tell = (id: number, changes: Partial<Sending>) =>
    setSendings((before) => before.map((one) => (one.id === id ? { ...one, ...changes } : one)))
  const send = async (id: number, file: File): Promise<boolean> => {
    try {
      const mime_type = file.type || types[file.name.split('.').at(-1) ?? ''] || 'application/octet-stream'
      const body = { filename: file.name, mime_type, size_bytes: file.size }
      const { data, upload_url } = await call(adminUploadMedia, { path, body })
      await put(ownUrl(upload_url), file, mime_type, (share) => tell(id, { share }))
      // reading it makes it a file: the server looks whether the bytes are there
      await call(adminGetMedia, { path: { ...path, assetId: data.id } })
      if (folderId) await call(updateMedia, { path: { ...path, assetId: data.id }, body: { folder_id: folderId } })
      setSendings((before) => before.filter((one) => one.id !== id))
      return true
    } catch (error) {
      tell(id, { problem: sentenceOf(error) })
      failed(error)
      return false
    }
  }
  const upload = async (files: readonly File[]): Promise<void> => {
    const queue = files.map((file) => {
      lastId += 1
      return { id: lastId, file }
    })
    setSendings((before) => [
      ...before.filter(({ problem }) => problem === undefined),
      ...queue.map(({ id, file }) => ({ id, name: file.name, share: 0 })),
    ])
    let sent = 0
    const work = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) if (await send(next.id, next.file)) sent += 1
    }
    await Promise.all([work(), work()])
    if (sent > 0) done(`${counted(sent, 'file')} uploaded.`)
    await refresh()
  }
  return { sendings, upload }
}
