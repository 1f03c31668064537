// npm run proof:memory: what a server keeps in memory, in rounds of use (memory/rounds.ts), and after many projects were served (memory/many.ts).
const only = process.argv[process.argv.indexOf('--only') + 1]
const parts = process.argv.includes('--only') ? [only] : ['rounds', 'many']
if (parts.includes('rounds')) await import('./memory/rounds.ts')
if (parts.includes('many')) await import('./memory/many.ts')
