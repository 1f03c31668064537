// Imported first by the programs: what they import afterwards, dynamically, is compiled once for all starts of one version of its text.
import module from 'node:module'
import { fileURLToPath } from 'node:url'

// beside the code, so that nobody can write there who may not change the code; where this user may not write, nothing is cached
// portable: modules are known by their place beside the cache, so that it serves a copy of the program in another folder too
module.enableCompileCache({
  directory: fileURLToPath(new URL('../node_modules/.cache/trellis-compiled', import.meta.url)),
  portable: true,
})
