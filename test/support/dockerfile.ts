/** One instruction of a Dockerfile. `args` are the words of COPY and ENV, or the whole of RUN. */
export type Instruction = { readonly stage: number; readonly name: string; readonly text: string }

/** The instructions of a Dockerfile in their order; lines that end in a backslash go on. */
export const readDockerfile = (text: string): Instruction[] => {
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  let stage = -1
  return lines.map((line) => {
    const [, name = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    if (!name) throw new Error(`not an instruction: ${line}`)
    if (name === 'FROM') stage += 1
    return { stage, name, text: rest }
  })
}
