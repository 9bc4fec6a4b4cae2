import { api, ask, send } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { deviceName, SessionRow, TokenRow } from '../../parts/form/credential-rows.tsx'
import { askFirst } from '../../parts/dialog.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Age } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { type User, userName } from '../../state/session.ts'
import { accountTexts } from '../../strings/people/account.ts'
import { alertTexts, DESTINATION_TEXTS } from '../../strings/alerts.ts'
import { t } from '../../strings.ts'
import { userTexts } from '../../strings/people/users.ts'

/** A user's sessions, API tokens and destinations of alerts, each with a button that ends it. */
export function UserCredentials({ user }: { user: User }) {
  const id = String(user.id)
  const { data, error, reload } = useLoad(async () => {
    const [{ sessions }, { tokens }, { destinations }] = await Promise.all([
      ask(api.users[':id'].sessions.$get({ param: { id } })),
      ask(api.users[':id'].tokens.$get({ param: { id } })),
      ask(api.users[':id'].destinations.$get({ param: { id } })),
    ])
    return { sessions, tokens, destinations }
    // Loaded again after a change, because a reset or a deactivation ends them.
  }, [user])
  const open = data.value
  const end = (text: string, confirm: string, done: string, act: () => Promise<unknown>) =>
    askFirst({
      text,
      confirm,
      isDangerous: true,
      act: async () => {
        await act()
        say(done)
        await reload()
      },
    })
  const name = userName(user)
  const endAllSessions = () =>
    end(userTexts.endAllSure(name), userTexts.endAll, userTexts.allEnded, () =>
      send(api.users[':id'].sessions.$delete({ param: { id } })),
    )
  const revokeAll = () =>
    end(userTexts.revokeAllSure(name), userTexts.revokeAll, userTexts.allRevoked, () =>
      send(api.users[':id'].tokens.$delete({ param: { id } })),
    )
  const deleteAll = () =>
    end(alertTexts.deleteAllSure(name), alertTexts.deleteAll, alertTexts.deleted, () =>
      send(api.users[':id'].destinations.$delete({ param: { id } })),
    )
  return (
    <>
      <Failure error={error.value} retry={reload} />
      <Card
        title={accountTexts.sessions}
        actions={
          open !== null && open.sessions.length > 0 && <Small name={userTexts.endAll} onClick={endAllSessions} />
        }
      >
        {open?.sessions.length === 0 && <p class="faint">{userTexts.noSessions}</p>}
        <ul class="rows">
          {open?.sessions.map((session) => (
            <SessionRow session={session} key={session.id}>
              <Small
                name={accountTexts.end}
                label={accountTexts.endLabel(deviceName(session.userAgent))}
                onClick={() =>
                  end(
                    userTexts.endSure(name, deviceName(session.userAgent)),
                    accountTexts.end,
                    accountTexts.ended,
                    () =>
                      send(
                        api.users[':id'].sessions[':sessionId'].$delete({
                          param: { id, sessionId: String(session.id) },
                        }),
                      ),
                  )
                }
              />
            </SessionRow>
          ))}
        </ul>
      </Card>
      <Card
        title={accountTexts.tokens}
        actions={open !== null && open.tokens.length > 0 && <Small name={userTexts.revokeAll} onClick={revokeAll} />}
      >
        {open?.tokens.length === 0 && <p class="faint">{accountTexts.noTokens}</p>}
        <ul class="rows">
          {open?.tokens.map((token) => (
            <TokenRow token={token} key={token.id}>
              <Small
                name={accountTexts.revoke}
                label={accountTexts.revokeLabel(token.name)}
                onClick={() =>
                  end(accountTexts.revokeSure(token.name), accountTexts.revoke, accountTexts.revoked, () =>
                    send(api.users[':id'].tokens[':tokenId'].$delete({ param: { id, tokenId: String(token.id) } })),
                  )
                }
              />
            </TokenRow>
          ))}
        </ul>
      </Card>
      <Card
        title={alertTexts.destinationsOf}
        actions={
          open !== null && open.destinations.length > 0 && <Small name={alertTexts.deleteAll} onClick={deleteAll} />
        }
      >
        {open?.destinations.length === 0 && <p class="faint">{alertTexts.noDestinationsOf}</p>}
        <ul class="rows">
          {open?.destinations.map((destination) => (
            <li key={destination.id}>
              <div class="grow break">
                <strong>{destination.name}</strong> <span class="tag">{DESTINATION_TEXTS[destination.kind]}</span>{' '}
                {destination.heldAt !== null && <span class="tag">{alertTexts.isHeld}</span>}
                {!destination.enabled && <span class="tag">{alertTexts.off}</span>}
                <div class="faint">
                  {destination.host} · {accountTexts.lastUsed} <Age at={destination.lastAt} />
                </div>
              </div>
              <Small
                name={t.common.delete}
                label={`${t.common.delete} ${destination.name}`}
                onClick={() =>
                  end(alertTexts.deleteOthers(destination.name, name), t.common.delete, alertTexts.deleted, () =>
                    send(
                      api.users[':id'].destinations[':destinationId'].$delete({
                        param: { id, destinationId: String(destination.id) },
                      }),
                    ),
                  )
                }
              />
            </li>
          ))}
        </ul>
      </Card>
    </>
  )
}

function Small({ name, label, onClick }: { name: string; label?: string; onClick(): void }) {
  return (
    <button type="button" class="button small" aria-label={label ?? name} onClick={onClick}>
      {name}
    </button>
  )
}
