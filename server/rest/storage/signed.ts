import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { contextOf, takeRateLimits } from '#server/http/app.ts'
import { unserved } from '#server/http/client_credentials.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import type { HandlerContext, Resolved } from '#server/http/route.ts'
import type { Signable } from '#server/media/assets.ts'
import { dispositionOf, download } from '#server/media/serve.ts'
import type { Ticket } from '#server/media/tickets.ts'
import { disabled, restArea, written } from '#server/rest/caller.ts'
import { type At, bodyOf, found, type Handler, linkTo, recordKey, shownPath } from '#server/rest/storage/context.ts'
import { Paths, refusedOne } from '#server/rest/storage/objects.ts'
import { Transform, variantFor } from '#server/rest/storage/transforms.ts'
import { takeUpload } from '#server/rest/storage/upload.ts'
import type { Services } from '#server/services.ts'

const mostSeconds = 86_400
/** As long as storage-api lets one upload by a signed URL. */
const uploadSeconds = 7200

const Seconds = z
  .int('must be a whole number')
  .min(1)
  .transform((seconds) => Math.min(seconds, mostSeconds))

/** Our own signed URL as the token of another one, which storage-js completes: it is relative, and its path is not encoded. */
const signedUrl = (context: HandlerContext, bucket: string, asset: Signable, variant: string | null = null): string => {
  const url = context.services.media.links.download(linkTo(context, asset, variant), new Date(asset.expires_at))
  const token = Buffer.from(url.slice(context.services.publicUrl.length)).toString('base64url')
  return `/object/sign/${bucket}/${shownPath(bucket, asset.key)}?token=${token}`
}

export const sign: Handler = async (context, at, reply) => {
  const { expiresIn, transform } = bodyOf(context, z.object({ expiresIn: Seconds, transform: Transform.optional() }))
  const asset = await found(context, at, expiresIn)
  const variant = transform ? variantFor(transform, asset.mime_type) : null
  return reply.send({ signedURL: signedUrl(context, at.bucket, asset, variant) })
}

export const signMany: Handler = async (context, { bucket }, reply) => {
  const { expiresIn, paths } = bodyOf(context, z.object({ expiresIn: Seconds, paths: Paths }))
  const signed = []
  for (const path of paths) {
    const one = await found(context, { bucket, key: path }, expiresIn).catch(refusedOne)
    signed.push(
      'asset_id' in one
        ? { error: null, path, signedURL: signedUrl(context, bucket, one) }
        : { error: one.message, path, signedURL: null },
    )
  }
  return reply.send(signed)
}

/** A project whose REST access is on, without credentials. */
export const openProject = async (services: Services, projectId: string): Promise<CachedProject> => {
  const project = await services.projectCache.byProject(projectId)
  if (!project?.restEnabled) throw disabled()
  return project
}

/** Where the app asks that a file be saved: with a name of its own, or with that of the file. */
export const savedAs = (name: string, link: Parameters<typeof dispositionOf>[0]) => {
  const saved = { ...link, mimeType: 'application/octet-stream' }
  return dispositionOf(name === '' ? saved : { ...saved, filename: name, object: '' })
}

const altered = () => refusal(403, 'FORBIDDEN', 'The URL was altered, has expired, or is for another file.')

/** Whoever has a signed URL reads the file, for as long as the REST access of the project is on. */
export const getSigned = async (services: Services, at: At, request: FastifyRequest, reply: FastifyReply) => {
  const { token = '', download: name } = request.query as { token?: string; download?: string }
  const link = services.media.links.verify(Buffer.from(String(token), 'base64url').toString(), 'GET')
  if (link?.op !== 'get' || link.key !== recordKey(at)) throw altered()
  request.trellisProject = link.projectId
  await openProject(services, link.projectId)
  const sending = name === undefined ? {} : { disposition: savedAs(String(name), link) }
  return download(services, link, request, reply, sending)
}

export const signUpload: Handler = async (context, at, reply) => {
  const { resolved, request, services } = context
  const replaces = request.headers['x-upsert'] === 'true'
  await context.call('media_admit', { ...at, replaces })
  const ticket = { projectId: projectIdOf(context), userId: resolved.claims.userId ?? null, ...at, replaces }
  const token = services.media.tickets.issue(ticket, new Date(services.now().getTime() + uploadSeconds * 1000))
  return reply.send({ url: `/object/upload/sign/${at.bucket}/${at.key}?token=${token}`, token })
}

/** Who a ticket was given to: refused by the database where it was banned or deleted meanwhile. */
const holderOf = async (services: Services, { projectId, userId }: Ticket): Promise<Resolved> => {
  const project = await openProject(services, projectId)
  if (!project.place) throw unserved(project)
  return userId === null
    ? { place: project.place, role: 'app_server', claims: { caller: 'server_key', projectId }, project }
    : { place: project.place, role: 'app_user', claims: { caller: 'user', userId, projectId }, project }
}

/** Whoever has a signed upload URL puts one file there. */
export const putSigned = async (services: Services, at: At, request: FastifyRequest, reply: FastifyReply) => {
  const { token = '' } = request.query as { token?: string }
  const ticket = services.media.tickets.read(String(token))
  if (!ticket || ticket.bucket !== at.bucket || ticket.key !== at.key) throw altered()
  request.trellisProject = ticket.projectId
  const resolved = await holderOf(services, ticket)
  request.trellisCaller = resolved.claims.caller
  takeRateLimits({}, resolved, services)
  const input = { params: {}, query: {}, body: {}, sent: {}, text: '' }
  const context = contextOf(restArea, written, input, request, resolved, services)
  const id = await takeUpload(context, at, ticket.replaces)
  return reply.send({ Id: id, Key: `${at.bucket}/${at.key}` })
}
