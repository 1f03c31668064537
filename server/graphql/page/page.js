const folder = new URL('.', import.meta.url)

const files = { json: 'jsonWorker.js', graphql: 'graphqlWorker.js' }
globalThis.MonacoEnvironment = {
  getWorker: (_module, label) => new Worker(new URL(files[label] ?? 'editorWorker.js', folder), { type: 'module' }),
}

const { React, createRoot, Ruru } = await import(new URL('ruru.js', folder))
createRoot(document.getElementById('ruru-root')).render(
  React.createElement(Ruru, {
    staticPath: folder.pathname,
    endpoint: location.pathname,
    // tokens are not stored
    storeHeaders: false,
    initialHeaders: '{"Authorization": "Bearer "}',
  }),
)
