import type { FastifyRequest } from 'fastify'

/** CORS: apps call from any origin, with tokens in headers; consoles only from the configured origins. */
export const corsFor =
  (origins: readonly string[]) => (request: FastifyRequest, done: (error: Error | null, options: object) => void) => {
    const isOpen = /^\/(v1\/client|storage|m|rest|auth\/v1)\//.test(request.url)
    done(null, {
      origin: isOpen ? '*' : origins.length > 0 ? origins : false,
      credentials: false,
      maxAge: 600,
      // an OPTIONS request without preflight headers gets the same response, and no text beside our envelope
      strictPreflight: false,
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      exposedHeaders: [
        'X-Request-Id',
        'Retry-After',
        'ETag',
        'Idempotency-Replayed',
        'Location',
        'Tus-Resumable',
        'Upload-Length',
        'Upload-Offset',
        'Content-Range',
        'Content-Disposition',
      ],
    })
  }
