// nginx as Debian packages it, serving a folder: downloads by sendfile, uploads by its module for WebDAV.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, temporaryFolder } from '#test/support/process.ts'

export type Nginx = { readonly url: string; readonly version: string; readonly pid: number; stop(): Promise<void> }

const program = process.env['BENCH_NGINX'] ?? 'nginx'

const versionOf = (): string | null => {
  try {
    const text = execFileSync('sh', ['-c', '"$0" -v 2>&1', program], { encoding: 'utf8' })
    return /nginx\/([\d.]+)/.exec(text)?.[1] ?? null
  } catch {
    return null
  }
}

const configuration = (folder: string, files: string, port: number) => `
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes auto;
pid ${folder}/pid;
error_log ${folder}/error.log;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  client_max_body_size 60m;
  client_body_temp_path ${folder}/bodies;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    location / { root ${files}; }
    location /uploads/ { root ${folder}; dav_methods PUT; create_full_put_path on; }
  }
}
`

/** Serves the files of a folder and takes uploads under /uploads/; null where there is no nginx. */
export const startNginx = async (files: string): Promise<Nginx | null> => {
  const version = versionOf()
  if (!version) return null
  const folder = await temporaryFolder()
  const port = await freePort()
  await mkdir(join(folder, 'uploads'))
  await writeFile(join(folder, 'nginx.conf'), configuration(folder, files, port))
  // a variable NGINX would name inherited sockets; the program is looked for on the PATH that it is given
  const child = spawn(program, ['-p', folder, '-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')], {
    env: { PATH: process.env['PATH'] },
    stdio: 'inherit',
  })
  await once(child, 'spawn')
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; ; tries += 1) {
    if (await fetch(url).catch(() => null)) break
    if (tries > 100) throw new Error('nginx does not answer')
    await sleep(50)
  }
  return {
    url,
    version,
    pid: child.pid ?? 0,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}
