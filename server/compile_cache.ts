// Imported first by each program: modules that are imported afterwards, dynamically, are compiled once for all starts of one version of their text.
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// beside the code, so that nobody can write there who may not change the code; where this user may not write, nothing is cached
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/trellis-compiled', import.meta.url)))
