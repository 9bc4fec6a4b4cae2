// The most frequent leaked passwords of eight characters or more: shorter ones are refused anyway.
const WORDS = `
password passw0rd password1 password12 password123 password1234 password12345 password123456 password!
qwertyui qwertyuiop qwerty123 qwerty1234 qwerty12345 qwerty123456 qwertyuiop123 qwertyuiopasdfghjkl
qwertyuiopasdfghjklzxcvbnm asdfghjk asdfghjkl asdfghjkl123 zxcvbnm1 zxcvbnm123 1qaz2wsx 1qaz2wsx3edc
1qaz2wsx3edc4rfv 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1q2w3e4r5t6y7u8i9o0p q1w2e3r4 q1w2e3r4t5y6 qazwsxedc
qazwsxedcrfv zaq12wsx zaq1zaq1 iloveyou iloveyou1 iloveyou2 iloveyou123 sunshine sunshine1 princess princess1
football football1 baseball baseball1 basketball superman superman1 batman123 trustno1 welcome1 welcome123
letmein1 letmein123 letmeinplease admin123 admin1234 admin12345 administrator administrator1 administrator123
changeme changeme1 changeme123 changemeplease default1 defaultpassword master123 mastermaster monkey123
dragon123 shadow123 michael1 jennifer jordan23 charlie1 starwars starwars1 whatever computer computer1 internet
samsung1 whatever1 freedom1 michelle corvette mercedes maverick elephant chocolate butterfly liverpool arsenal1
chelsea1 barcelona cristiano ronaldo7 bismillah abcdefgh abcdefghi abcdefghij abcdefghijklmnop abcd1234 abcd12345
abc12345 abc123456 abc123abc a1b2c3d4 a1b2c3d4e5 aa123456 aa12345678 pass1234 pass12345 test1234 test12345
testtest testpassword user1234 guest123 login123 secret123 secretpassword mypassword mypassword1 mypassword123
yourpassword thepassword newpassword newpassword1 oldpassword nopassword correcthorsebatterystaple
correct-horse-battery-staple correct horse battery staple passwordpassword passwordpassword1 passwordpassword123
adminadmin adminadminadmin rootroot rootpassword rootroot123 toortoor raspberry raspberrypi raspberry123
raspberrypi123 meshtastic meshtastic1 meshtastic123 meshtastic1234 meshtastic12345 meshtasticpassword meshmonitor
meshmonitor123 meshmonitoring lorawan1 letsmesh q1w2e3r4t5y6u7i8 thisisapassword thisismypassword iamthepassword
passwordispassword supersecretpassword verysecretpassword super-secret-password longpassword longpassword123
averylongpassword 123456789abc 123456789a 123456789q 123qweasd 123qweasdzxc 12345qwert 123456qwerty 1234qwer
1234567890qwertyuiop monkeymonkey dragondragon winter2024 winter2025 winter2026 summer2024 summer2025 summer2026
spring2024 spring2025 spring2026 autumn2024 autumn2025 autumn2026`

const COMMON = new Set([
  ...WORDS.split(/\s+/).filter((word) => word !== ''),
  'correct horse battery staple',
  'this is a password',
  'this is my password',
])

const RUNS = ['01234567890123456789', 'abcdefghijklmnopqrstuvwxyz', 'qwertyuiopasdfghjklzxcvbnm']

/** Whether a lower-case password is a common one, a repeated word or short pattern, or a sequence of adjacent keys. */
export function isCommonPassword(password: string): boolean {
  const backwards = [...password].toReversed().join('')
  return (
    COMMON.has(password) ||
    COMMON.has(password.replace(/[\d!.]+$/, '')) ||
    isRepetition(password) ||
    RUNS.some((run) => isRun(run, password) || isRun(run, backwards))
  )
}

// Only short ASCII passwords are checked for repetition: lists of common passwords contain no others.
const TYPED = /^[\x20-\x7e]{1,40}$/

// A repetition such as "abcabcabc" occurs in its own doubling other than at its two ends.
function isRepetition(password: string): boolean {
  if (!TYPED.test(password)) return false
  const period = (password + password).indexOf(password, 1)
  const unit = password.slice(0, period)
  return period < password.length && (unit.length <= 8 || COMMON.has(unit))
}

function isRun(run: string, password: string): boolean {
  return (run + run + run).includes(password)
}
