import type { FastifyInstance } from 'fastify'
import type { Services } from '#server/services.ts'

/** GET /metrics on the port of the API, where METRICS_TOKEN allows it. */
export const serveMetrics =
  ({ telemetry: { scrape } }: Pick<Services, 'telemetry'>) =>
  async (app: FastifyInstance): Promise<void> => {
    if (!scrape) return
    app.get('/metrics', (request, reply) => {
      reply.hijack()
      scrape(request.raw, reply.raw)
    })
  }
